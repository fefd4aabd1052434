// Sums of costs, by day and in total.
import type { Schemas } from '../api/client';
import type { Period } from '../api/queries';

type Cost = Schemas['Cost'];

export interface CostRow {
  /** Empty for all resources that have no row of their own. */
  key: string;
  name: string;
  micros: number;
}

/** CostStack has the costs of each day, by part. */
export interface CostStack {
  /** The beginnings of the days, in UTC. */
  days: string[];
  parts: (CostRow & { values: number[] })[];
}

const dayMs = 86_400_000;

/** daysOf returns the days (UTC) of a period that have begun. */
export function daysOf(period: Period, now: Date): string[] {
  const [from, to] = [Date.parse(period.from), Math.min(Date.parse(period.to), now.getTime())];
  const first = Math.floor(from / dayMs) * dayMs;
  return Array.from({ length: Math.max(0, Math.ceil((to - first) / dayMs)) }, (_, i) =>
    new Date(first + i * dayMs).toISOString(),
  );
}

/** rowsOf sums costs by key over all days, the largest first. */
export function rowsOf(items: readonly Cost[]): CostRow[] {
  const rows = new Map<string, CostRow>();
  for (const c of items) {
    const row = rows.get(c.key) ?? { key: c.key, name: '', micros: 0 };
    // Days are in order, so the last name is the newest.
    rows.set(c.key, { ...row, name: c.name || row.name, micros: row.micros + c.amountMicros });
  }
  return [...rows.values()].sort((a, b) => b.micros - a.micros || (a.key < b.key ? -1 : 1));
}

/** stackOf groups costs by day; those with an empty key, all others, are the last part. */
export function stackOf(items: readonly Cost[], days: string[]): CostStack {
  const rows = rowsOf(items).filter((r) => r.micros > 0);
  const parts = [...rows.filter((r) => r.key !== ''), ...rows.filter((r) => r.key === '')].map((r) => ({
    ...r,
    values: days.map(() => 0),
  }));
  const at = new Map(parts.map((r) => [r.key, r]));
  const index = new Map(days.map((d, i) => [d.slice(0, 10), i]));
  for (const c of items) {
    const [day, part] = [index.get(c.from.slice(0, 10)), at.get(c.key)];
    if (day !== undefined && part) part.values[day]! += c.amountMicros;
  }
  return { days, parts };
}

/** forecast extrapolates the usage so far to the end of a running period; undefined if it is too early. */
export function forecast(usageMicros: number, restMicros: number, period: Period, now: Date): number | undefined {
  const [from, to] = [Date.parse(period.from), Date.parse(period.to)];
  const passed = now.getTime() - from;
  if (passed < dayMs || now.getTime() >= to) return undefined;
  return (usageMicros * (to - from)) / passed + restMicros;
}
