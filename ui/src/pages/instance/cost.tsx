// What an instance costs per hour, and has cost this month.
import type { Instance } from '../../api/client';
import { useInstanceCost } from '../../api/offers';
import { useText } from '../../i18n';
import { formatMicros } from '../../lib/format';

/** Cost shows nothing if a meter has no price, or the role may not see prices. */
export function Cost({ instance: i }: { instance: Instance }) {
  const { t, language } = useText();
  const cost = useInstanceCost(i.meta.id ?? '').data;
  if (!cost?.currency) return null;
  const money = (micros: number) => formatMicros(micros, cost.currency, language);
  const hourly = (micros: number) => t('unit.perHour', { price: money(micros) });
  return (
    <p>
      {cost.reservedMicros === cost.fullUseMicros
        ? t('next.cost', { price: hourly(cost.fullUseMicros) })
        : t('next.costGPU', { reserved: hourly(cost.reservedMicros), full: hourly(cost.fullUseMicros) })}{' '}
      {t('next.spent', { price: money(cost.spentMicros) })}
    </p>
  );
}
