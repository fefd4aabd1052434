// The free capacity: how many of each slice, by model, and how scattered the free VRAM is.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useSlices } from '../../api/offers';
import { useText } from '../../i18n';
import { formatBytes, formatPercent } from '../../lib/format';
import { roomByModel } from '../../lib/heat';
import { kindsOf } from '../../lib/offer';
import type { CardFigures } from '../../lib/pool';
import { ErrorAlert } from '../../parts/error';
import { Forecast } from './forecast';

const shares = [100, 50, 25, 10];

export function CapacityCard({ cards }: { cards: CardFigures[] }) {
  const { t, language } = useText();
  const { data, error } = useSlices();
  const kinds = kindsOf(data?.items ?? [], 'standard');
  const several = new Set(kinds.map((k) => k.pool)).size > 1;
  return (
    <Card>
      <CardTitle component="h2">{t('room.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <ErrorAlert error={error} />
        {kinds.length > 0 && (
          <table className="basalt-prices" aria-label={t('room.title')}>
            <thead>
              <tr>
                <th scope="col">{t('room.model')}</th>
                {shares.map((s) => (
                  <th key={s} scope="col" className="basalt-end">
                    {formatPercent(s, language)}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {kinds.map((k) => (
                <tr key={k.id}>
                  <th scope="row">
                    {k.model}
                    {several && <span className="basalt-note"> {k.pool}</span>}
                  </th>
                  {shares.map((s) => (
                    <td key={s} className="basalt-number">
                      {k.slices.find((x) => x.sharePercent === s)?.free ?? '–'}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
        {kinds.length > 0 && <p className="basalt-note">{t('room.help')}</p>}
        {roomByModel(cards).map((r) => (
          <p key={r.model}>
            {t('room.free', {
              model: r.model,
              free: formatBytes(r.freeBytes, language),
              whole: r.whole,
              gpus: r.gpus,
              scattered: formatPercent(r.freeBytes > 0 ? (100 * r.scatteredBytes) / r.freeBytes : 0, language),
            })}
          </p>
        ))}
        <Forecast />
        {data && kinds.length === 0 && <p className="basalt-note">{t('room.none')}</p>}
      </CardBody>
    </Card>
  );
}
