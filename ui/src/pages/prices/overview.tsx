// All prices of a book on one screen, in groups and customary units, with what a month costs.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import type { Schemas } from '../../api/client';
import { useFlavors } from '../../api/queries';
import { useText } from '../../i18n';
import { formatDay, formatMicros, formatPercent } from '../../lib/format';
import { groupsOf, sliceShares, type PriceLine } from '../../lib/price-groups';
import { meterName } from './rows';

export function Overview({ book }: { book: Schemas['PriceBookSpec'] }) {
  const { t, language } = useText();
  return (
    <Card>
      <CardTitle component="h2">{t('price.overview')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('price.overviewHelp', { currency: book.currency })}</p>
        {groupsOf(book).map(({ group, lines }) => (
          <table key={group} className="basalt-prices" aria-label={t(`price.group.${group}`)}>
            <thead>
              <tr>
                <th scope="col">
                  <strong>{t(`price.group.${group}`)}</strong>
                </th>
                <th scope="col" className="basalt-end">
                  {t('inv.price')}
                </th>
                {group === 'gpu' &&
                  sliceShares.map((s) => (
                    <th key={s} scope="col" className="basalt-end basalt-wide">
                      {t('price.monthOf', { share: formatPercent(Number(s), language) })}
                    </th>
                  ))}
                <th scope="col" className="basalt-end">
                  {t('price.month')}
                </th>
              </tr>
            </thead>
            <tbody>
              {lines.map((l) => (
                <Line key={l.key} line={l} currency={book.currency} slices={group === 'gpu'} />
              ))}
            </tbody>
          </table>
        ))}
      </CardBody>
    </Card>
  );
}

function Line({ line: l, currency, slices }: { line: PriceLine; currency: string; slices: boolean }) {
  const { t, has, language } = useText();
  const money = (micros?: bigint) => (micros === undefined ? '–' : formatMicros(micros, currency, language));
  // A price per unit is shown with all its digits: Intl takes decimals as text.
  const digits = { style: 'currency', currency, maximumFractionDigits: 18 } as const;
  const each = (text: string) => new Intl.NumberFormat(language, digits).format(text as `${number}`);
  const unit = l.unit ? t(l.unit.text) : '';
  return (
    <tr>
      <th scope="row">
        {meterName(has, t, l.price.meter)} <Where of={l.price} />
        {l.tiers.map((x) => (
          <div key={x.upTo} className="basalt-note">
            {t('price.tierLine', { upTo: x.upTo, unit, price: each(x.each) })}
          </div>
        ))}
      </th>
      <td>
        {l.each !== undefined
          ? t('inv.per', { price: each(l.each), unit })
          : t('inv.per', { price: money(BigInt(l.price.priceMicros ?? 0)), unit: l.price.unit ?? String(l.price.per) })}
      </td>
      {slices &&
        sliceShares.map((s, i) => (
          <td key={s} className="basalt-wide">
            {money(l.slices?.[i])}
          </td>
        ))}
      <td>{money(l.month)}</td>
    </tr>
  );
}

/** Where shows what a price applies to, and from when. */
function Where({ of: p }: { of: Schemas['Price'] }) {
  const { t, language } = useText();
  const flavors = useFlavors().data?.items ?? [];
  const { model, pool, storageClass, flavor, tier } = p.where ?? {};
  const parts = [
    model,
    pool && t('price.where.pool', { pool }),
    storageClass,
    flavor && (flavors.find((f) => f.meta.id === flavor)?.meta.name ?? flavor),
    tier,
    p.from && !p.from.startsWith('0001-') && t('price.where.from', { day: formatDay(p.from, language) }),
  ].filter(Boolean);
  return parts.length > 0 && <span className="basalt-note">{parts.join(', ')}</span>;
}
