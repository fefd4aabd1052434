// Relative times in words.

const units: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ['year', 365 * 86_400],
  ['month', 30 * 86_400],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
];

const made = new Map<string, Intl.RelativeTimeFormat>();

function format(language: string): Intl.RelativeTimeFormat {
  const known = made.get(language) ?? new Intl.RelativeTimeFormat(language, { numeric: 'auto' });
  made.set(language, known);
  return known;
}

/** relative formats a time relative to another (ms since 1970), in the largest unit that it fills. */
export function relative(at: number, now: number, language: string): string {
  const seconds = (at - now) / 1000;
  for (const [unit, size] of units)
    if (Math.abs(seconds) >= size) return format(language).format(Math.trunc(seconds / size), unit);
  return format(language).format(0, 'second');
}
