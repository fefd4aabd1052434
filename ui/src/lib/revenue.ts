// The periods of the revenue page.
import type { Month } from './period';

export interface Choice extends Month {
  id: string;
  /** The kind of period: the last twelve months, a year, or a month. */
  kind: 'last12' | 'year' | 'month';
}

const iso = (year: number, month: number) => new Date(Date.UTC(year, month)).toISOString().replace('.000Z', 'Z');

/** choices returns the periods to choose from: the last twelve months including this one, this year and the last,
 * and each of the months. */
export function choices(now: Date): Choice[] {
  const [y, m] = [now.getUTCFullYear(), now.getUTCMonth()];
  const year = (n: number): Choice => ({ id: `y${n}`, kind: 'year', from: iso(n, 0), to: iso(n + 1, 0) });
  return [
    { id: 'last12', kind: 'last12', from: iso(y, m - 11), to: iso(y, m + 1) },
    year(y),
    year(y - 1),
    ...Array.from({ length: 12 }, (_, i): Choice => ({
      id: iso(y, m - i).slice(0, 7),
      kind: 'month',
      from: iso(y, m - i),
      to: iso(y, m - i + 1),
    })),
  ];
}
