// The rows of a price book's editor: prices, commitments, discounts.
import { Button } from '@patternfly/react-core';
import { useText } from '../../i18n';
import type { BookForm, CommitmentRow, DiscountRow, PriceRow } from '../../lib/book';
import { meters, units } from '../../lib/meter';
import { SelectField, TextField } from '../../parts/text-field';

interface Props<R> {
  rows: R[];
  set: (rows: R[]) => void;
  currency: string;
}

export const meterName = (has: (key: string) => boolean, t: (key: 'meter.vcpu-seconds') => string, m: string) =>
  has(`meter.${m}`) ? t(`meter.${m}` as 'meter.vcpu-seconds') : m;

const changed = <R,>(rows: R[], i: number, part: Partial<R>) => rows.map((r, j) => (j === i ? { ...r, ...part } : r));
const without = <R,>(rows: R[], i: number) => rows.filter((_, j) => j !== i);

function useMeters() {
  const { t, has } = useText();
  const name = (m: string) => meterName(has, t, m);
  return {
    name,
    options: meters.map((m): [string, string] => [m, name(m)]),
    unitsOf: (m: string) => (units[m] ?? []).map((u): [string, string] => [u.id, t(u.text)]),
  };
}

export function PriceRows({ rows, set, currency }: Props<PriceRow>) {
  const { t, language } = useText();
  const { name, options, unitsOf } = useMeters();
  return rows.map((r, i) => {
    const path = `spec.prices[${i}]`;
    const put = (part: Partial<PriceRow>) => set(changed(rows, i, part));
    const remove = (
      <Button
        variant="link"
        isDanger
        aria-label={t('price.removeOf', { meter: name(r.meter) })}
        onClick={() => set(without(rows, i))}
      >
        {t('price.remove')}
      </Button>
    );
    if (r.raw)
      return (
        <div key={r.key} className="basalt-row">
          <strong>{name(r.meter)}</strong>
          <span>
            {t('price.raw', {
              price: r.raw.priceMicros,
              per: new Intl.NumberFormat(language).format(r.raw.per),
              currency,
            })}
          </span>
          {remove}
        </div>
      );
    return (
      <fieldset key={r.key} className="basalt-rowset">
        <legend className="pf-v6-screen-reader">{name(r.meter)}</legend>
        <div className="basalt-row">
          <SelectField
            id={`m-${r.key}`}
            label={t('price.meter')}
            path={`${path}.meter`}
            value={r.meter}
            options={options}
            onChange={(m) => put({ meter: m, unit: units[m]?.[0]?.id ?? '' })}
          />
          <TextField
            id={`p-${r.key}`}
            label={t('price.price', { currency })}
            path={`${path}.priceMicros`}
            value={r.price}
            onChange={(price) => put({ price })}
          />
          <SelectField
            id={`u-${r.key}`}
            label={t('price.per')}
            value={r.unit}
            options={unitsOf(r.meter)}
            onChange={(unit) => put({ unit })}
          />
          <TextField
            id={`f-${r.key}`}
            type="datetime-local"
            label={t('price.begins')}
            path={`${path}.from`}
            value={r.from}
            onChange={(from) => put({ from })}
          />
          <div className="basalt-row-actions">
            <Button
              variant="link"
              aria-label={t('price.tierOf', { meter: name(r.meter) })}
              onClick={() => put({ tiers: [...r.tiers, { upTo: '', price: '' }] })}
            >
              {t('price.tier')}
            </Button>
            {remove}
          </div>
        </div>
        {r.tiers.map((tier, j) => (
          <div key={j} className="basalt-row basalt-row-inner">
            <TextField
              id={`t-${r.key}-${j}`}
              label={t('price.upTo')}
              path={`${path}.tiers[${j}].upTo`}
              value={tier.upTo}
              onChange={(upTo) => put({ tiers: changed(r.tiers, j, { upTo }) })}
            />
            <TextField
              id={`tp-${r.key}-${j}`}
              label={t('price.tierPrice')}
              help={j === r.tiers.length - 1 ? t('price.tiersHelp') : undefined}
              path={`${path}.tiers[${j}].priceMicros`}
              value={tier.price}
              onChange={(price) => put({ tiers: changed(r.tiers, j, { price }) })}
            />
            <div className="basalt-row-actions">
              <Button
                variant="link"
                isDanger
                aria-label={t('price.tierRemove', { n: j + 1, meter: name(r.meter) })}
                onClick={() => put({ tiers: without(r.tiers, j) })}
              >
                {t('price.remove')}
              </Button>
            </div>
          </div>
        ))}
      </fieldset>
    );
  });
}

export function CommitmentRows({ rows, set, currency }: Props<CommitmentRow>) {
  const { t } = useText();
  const { name, options, unitsOf } = useMeters();
  return rows.map((r, i) => {
    const path = `spec.commitments[${i}]`;
    const put = (part: Partial<CommitmentRow>) => set(changed(rows, i, part));
    return (
      <div key={r.key} className="basalt-row">
        <SelectField
          id={`cm-${r.key}`}
          label={t('price.meter')}
          path={`${path}.meter`}
          value={r.meter}
          options={options}
          onChange={(m) => put({ meter: m, unit: units[m]?.[0]?.id ?? '', raw: undefined })}
        />
        <TextField
          id={`cq-${r.key}`}
          label={t('price.quantity')}
          path={`${path}.quantity`}
          value={r.quantity}
          onChange={(quantity) => put({ quantity, raw: undefined })}
        />
        <SelectField
          id={`cu-${r.key}`}
          label={t('price.per')}
          value={r.unit}
          options={unitsOf(r.meter)}
          onChange={(unit) => put({ unit, raw: undefined })}
        />
        <TextField
          id={`cp-${r.key}`}
          label={t('price.eachMonth', { currency })}
          path={`${path}.priceMicros`}
          value={r.price}
          onChange={(price) => put({ price, raw: undefined })}
        />
        <TextField
          id={`cf-${r.key}`}
          type="datetime-local"
          label={t('price.begins')}
          path={`${path}.from`}
          value={r.from}
          onChange={(from) => put({ from })}
        />
        <TextField
          id={`ct-${r.key}`}
          type="datetime-local"
          label={t('price.until')}
          path={`${path}.until`}
          value={r.until}
          onChange={(until) => put({ until })}
        />
        <div className="basalt-row-actions">
          <Button
            variant="link"
            isDanger
            aria-label={t('price.removeOf', { meter: name(r.meter) })}
            onClick={() => set(without(rows, i))}
          >
            {t('price.remove')}
          </Button>
        </div>
      </div>
    );
  });
}

export function DiscountRows({ rows, set }: Props<DiscountRow>) {
  const { t } = useText();
  const { options } = useMeters();
  return rows.map((r, i) => {
    const path = `spec.discounts[${i}]`;
    const put = (part: Partial<DiscountRow>) => set(changed(rows, i, part));
    const several = r.raw?.meters?.length ?? 0;
    return (
      <div key={r.key} className="basalt-row">
        <SelectField
          id={`dm-${r.key}`}
          label={t('price.meter')}
          value={several ? 'several' : r.meter}
          options={[
            ...(several ? [['several', t('price.someMeters', { n: several })] as [string, string]] : []),
            ['', t('price.allMeters')],
            ...options,
          ]}
          onChange={(meter) => put({ meter, raw: undefined })}
        />
        <TextField
          id={`dp-${r.key}`}
          label={t('price.percent')}
          path={`${path}.basisPoints`}
          value={r.percent}
          onChange={(percent) => put({ percent })}
        />
        <TextField
          id={`df-${r.key}`}
          type="datetime-local"
          label={t('price.begins')}
          path={`${path}.from`}
          value={r.from}
          onChange={(from) => put({ from })}
        />
        <TextField
          id={`du-${r.key}`}
          type="datetime-local"
          label={t('price.until')}
          path={`${path}.until`}
          value={r.until}
          onChange={(until) => put({ until })}
        />
        <div className="basalt-row-actions">
          <Button variant="link" isDanger onClick={() => set(without(rows, i))}>
            {t('price.remove')}
          </Button>
        </div>
      </div>
    );
  });
}

/** missing lists the meters that have no price. */
export const missing = (f: BookForm) => meters.filter((m) => !f.prices.some((p) => p.meter === m));
