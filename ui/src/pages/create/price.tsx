// The price of an hour of the instance, from its offer.
import { useText, type Key } from '../../i18n';
import { formatMicros } from '../../lib/format';
import { partsOf, type Offer, type Part } from '../../lib/offer';

const labels: Record<Part, Key> = {
  compute: 'new.priceCompute',
  disk: 'new.priceDisk',
  vram: 'new.priceVram',
  gpu: 'new.priceGpu',
};

interface Cost {
  reservedMicros: number;
  fullUseMicros: number;
}

export function Price({ offer }: { offer?: Offer }) {
  const { t, language } = useText();
  if (!offer) return <p className="basalt-note">{t('new.priceWait')}</p>;
  // Without a GPU, an hour has the same price at any load.
  const ends = offer.model ? (['reservedMicros', 'fullUseMicros'] as const) : (['fullUseMicros'] as const);
  const line = (cost: Cost) =>
    ends.map((end) => (
      <td key={end}>{t('unit.perHour', { price: formatMicros(cost[end], offer.currency, language) })}</td>
    ));
  return (
    <div className="basalt-stack">
      <table className="basalt-prices">
        {offer.model && (
          <thead>
            <tr>
              <td />
              {ends.map((end) => (
                <th scope="col" key={end}>
                  {t(end === 'reservedMicros' ? 'new.priceReserved' : 'new.priceFull')}
                </th>
              ))}
            </tr>
          </thead>
        )}
        <tbody>
          {partsOf(offer).map(([part, cost]) => (
            <tr key={part}>
              <th scope="row">{t(labels[part])}</th>
              {line(cost)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{t('new.priceTotal')}</th>
            {line(offer)}
          </tr>
        </tfoot>
      </table>
      <p className="basalt-note">
        {t('new.priceHelp')}
        {offer.model && ` ${t('new.priceGpuHelp')}`}
      </p>
    </div>
  );
}
