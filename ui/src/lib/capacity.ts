// The forecast of a GPU model's capacity in words.
import type { Schemas } from '../api/client';
import type { Translation } from '../i18n';

/** forecastOf returns when the GPUs of a model are full; empty if nothing can be said. */
export function forecastOf(g: Schemas['GPUCapacity'], { t }: Pick<Translation, 't'>, pool: boolean): string {
  const model = pool ? `${g.model} (${g.pool})` : g.model;
  switch (g.trend) {
    case 'full':
      return t('room.full', { model });
    case 'growing':
      return t('room.forecast', {
        model,
        days: g.fullInDays ?? 0,
        from: g.earliestDays ?? 0,
        to: g.latestDays ?? 0,
      });
    default:
      return '';
  }
}
