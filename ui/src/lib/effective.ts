// When a change of prices takes effect: never in an hour that has begun.
export const starts = ['hour', 'day', 'month'] as const;
export type Start = (typeof starts)[number];

/** startOf returns the next full hour, day or month in UTC. */
export function startOf(start: Start, now: Date): string {
  const [y, m, d, h] = [now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate(), now.getUTCHours()];
  const at = { hour: [y, m, d, h + 1], day: [y, m, d + 1, 0], month: [y, m + 1, 1, 0] }[start] as [
    number,
    number,
    number,
    number,
  ];
  return new Date(Date.UTC(...at)).toISOString().replace('.000Z', 'Z');
}
