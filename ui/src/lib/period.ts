// Months in UTC, by which usage is summed.
export interface Month {
  from: string;
  to: string;
}

const iso = (year: number, month: number) => new Date(Date.UTC(year, month)).toISOString().replace('.000Z', 'Z');

/** month returns the month of a time, or one some months before. */
export function month(at: Date, before = 0): Month {
  const [y, m] = [at.getUTCFullYear(), at.getUTCMonth() - before];
  return { from: iso(y, m), to: iso(y, m + 1) };
}

export const monthName = (m: Month, language: string) =>
  new Intl.DateTimeFormat(language, { month: 'long', year: 'numeric', timeZone: 'UTC' }).format(new Date(m.from));
