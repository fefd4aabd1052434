// The periods in which a reseller is charged for its customers' usage.
import type { Schemas } from '../api/client';

type Period = Schemas['Wholesale'];

const hour = 3_600_000;

/** nextHour returns the next full hour. */
const nextHour = (now: Date) => new Date(Math.ceil(now.getTime() / hour) * hour).toISOString().replace('.000Z', 'Z');

/** wholesaleAt returns the period that applies at a time or begins later; undefined if all have ended. */
export function wholesaleAt(periods: Period[] | undefined, now: Date): Period | undefined {
  return periods?.find((p) => !p.until || new Date(p.until) > now);
}

/** toggled ends the open period at the next full hour, or begins one then. */
export function toggled(periods: Period[] | undefined, now: Date): Period[] {
  const all = periods ?? [];
  const at = nextHour(now);
  const last = all.at(-1);
  if (!last || (last.until && last.until <= at)) return [...all, { from: at }];
  const before = all.slice(0, -1);
  if (last.until) return [...before, { from: last.from }];
  return last.from >= at ? before : [...before, { ...last, until: at }];
}
