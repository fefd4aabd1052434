// The GPU of a new instance: a tile for each kind, then its slices.
import { FormGroup, FormHelperText, HelperText, HelperTextItem, Label } from '@patternfly/react-core';
import { useId, type ReactNode } from 'react';
import { useText } from '../../i18n';
import type { Draft } from '../../lib/draft';
import { formatBytes, formatMicros, formatPercent } from '../../lib/format';
import { useField } from '../../parts/form';
import { firstSlice, isOf, kindOf, kindsOf, take, type Offer } from '../../lib/offer';

interface TileProps {
  name: string;
  title: string;
  checked: boolean;
  onChange: () => void;
  children?: ReactNode;
}

/** Tile is one of several choices, with its properties. */
function Tile({ name, title, checked, onChange, children }: TileProps) {
  const id = useId();
  return (
    <label className="basalt-tile" htmlFor={id}>
      <span className="basalt-tile-head">
        <input type="radio" id={id} name={name} aria-label={title} checked={checked} onChange={onChange} />
        <strong>{title}</strong>
      </span>
      {children}
    </label>
  );
}

function Free({ free }: { free: number }) {
  const { t, language } = useText();
  return free > 0 ? (
    <Label color="green" isCompact>
      {t('new.free', { n: free.toLocaleString(language) })}
    </Label>
  ) : (
    <Label color="grey" isCompact>
      {t('new.freeNone')}
    </Label>
  );
}

interface Props {
  offers: Offer[];
  draft: Draft;
  set: (d: Draft) => void;
}

export function Gpu({ offers, draft, set }: Props) {
  const { t, language } = useText();
  const error = useField('new-gpu', { path: 'spec.vgpu', label: t('new.gpu') });
  const kinds = kindsOf(offers, draft.tier || 'standard');
  const none = offers.find((o) => !o.model);
  const kind = kinds.find((k) => k.id === kindOf(draft));
  const several = new Set(kinds.map((k) => k.pool)).size > 1;
  const perHour = (micros: number, currency: string) =>
    t('unit.perHour', { price: formatMicros(micros, currency, language) });
  return (
    <>
      <FormGroup role="radiogroup" fieldId="new-gpu" label={t('new.gpu')}>
        <div className="basalt-tiles">
          <Tile name="new-gpu" title={t('new.gpuNone')} checked={!draft.vgpu} onChange={() => set(take(draft))}>
            {none && <span>{perHour(none.reservedMicros, none.currency)}</span>}
            {none && <Free free={none.free} />}
          </Tile>
          {kinds.map((k) => (
            <Tile
              key={k.id}
              name="new-gpu"
              title={several ? t('new.gpuIn', { model: k.model, pool: k.pool }) : k.model}
              checked={k === kind}
              onChange={() => set(take(draft, firstSlice(k)))}
            >
              <span className="basalt-note">{t('inst.vram', { size: formatBytes(k.vramBytes, language) })}</span>
              <span>{t('new.from', { price: perHour(k.fromMicros, k.currency) })}</span>
              <Free free={k.free} />
            </Tile>
          ))}
        </div>
        {error && (
          <FormHelperText>
            <HelperText aria-live="polite">
              <HelperTextItem variant="error">{error}</HelperTextItem>
            </HelperText>
          </FormHelperText>
        )}
        {offers.length > 0 && kinds.length === 0 && <p className="basalt-note">{t('new.gpuNowhere')}</p>}
      </FormGroup>
      {kind && (
        <FormGroup role="radiogroup" fieldId="new-slice" label={t('new.slice')}>
          <div className="basalt-tiles">
            {kind.slices.map((s) => (
              <Tile
                key={`${s.sharePercent} ${s.vramBytes}`}
                name="new-slice"
                title={
                  s.sharePercent === 100
                    ? t('new.sliceWhole')
                    : t('new.slicePart', { percent: formatPercent(s.sharePercent ?? 0, language) })
                }
                checked={isOf(draft, s)}
                onChange={() => set(take(draft, s))}
              >
                <span className="basalt-note">{t('inst.vram', { size: formatBytes(s.vramBytes ?? 0, language) })}</span>
                <span>
                  {s.reservedMicros === s.fullUseMicros
                    ? perHour(s.reservedMicros, s.currency)
                    : t('new.range', {
                        from: formatMicros(s.reservedMicros, s.currency, language),
                        to: perHour(s.fullUseMicros, s.currency),
                      })}
                </span>
                <Free free={s.free} />
              </Tile>
            ))}
          </div>
        </FormGroup>
      )}
    </>
  );
}
