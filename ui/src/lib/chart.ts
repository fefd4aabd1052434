// The geometry of charts: scales, ticks and paths. Null values are gaps without a measurement.
import type { Schemas } from '../api/client';
import type { Range } from '../api/samples';

export type Series = Schemas['SampleSeries'];
export type Unit = Series['unit'];
export type Values = (number | null)[];

const known = (values: Values): number[] => values.filter((v): v is number => v !== null);

/** latest returns the last known value. */
export const latest = (values: Values): number | undefined => known(values).at(-1);

/** extent returns the lowest, highest and mean known value. */
export function extent(values: Values): { low: number; high: number; mean: number } | undefined {
  const all = known(values);
  if (all.length === 0) return undefined;
  return { low: Math.min(...all), high: Math.max(...all), mean: all.reduce((a, b) => a + b, 0) / all.length };
}

/** niceStep returns a step between ticks: 1, 2 or 5 times a power of ten; for bytes a power of two. */
export function niceStep(rough: number, unit: Unit): number {
  if (!(rough > 0)) return 1;
  if (unit.startsWith('bytes')) return 2 ** Math.max(0, Math.ceil(Math.log2(rough)));
  const power = 10 ** Math.floor(Math.log10(rough));
  return ([1, 2, 5, 10].find((m) => m * power >= rough * (1 - 1e-9)) ?? 10) * power;
}

/** least is the smallest top of an axis, so that small noise does not fill the chart. */
const least: Record<Unit, number> = {
  percent: 100,
  bytes: 2 ** 20,
  'bytes-per-second': 1024,
  'requests-per-second': 10,
};

/** axis returns ticks from zero to one at or above all values. */
export function axis(lines: Values[], unit: Unit, count = 4): number[] {
  const high = Math.max(least[unit], ...lines.flatMap(known));
  const step = niceStep(high / count, unit);
  return Array.from({ length: Math.ceil(high / step - 1e-9) + 1 }, (_, i) => i * step);
}

const minute = 60;

/** timeTicks returns the indexes of steps at round times, at most as many as most. */
export function timeTicks(from: string, stepSeconds: number, count: number, most: number): number[] {
  const every =
    [1, 5, 10, 15, 30, 60, 120, 180, 360, 720].map((m) => m * minute).find((s) => (count * stepSeconds) / s <= most) ??
    1440 * minute;
  const begin = Math.round(Date.parse(from) / 1000);
  const ticks: number[] = [];
  for (let i = 0; i < count; i++) {
    const at = begin + i * stepSeconds;
    if (Math.floor(at / every) !== Math.floor((at - stepSeconds) / every)) ticks.push(i);
  }
  return ticks;
}

/** runs returns the stretches without a gap as [first, last]. */
export function runs(values: Values): [number, number][] {
  const all: [number, number][] = [];
  values.forEach((v, i) => {
    if (v === null) return;
    const run = all.at(-1);
    if (run && run[1] === i - 1) run[1] = i;
    else all.push([i, i]);
  });
  return all;
}

export interface Plot {
  x: (index: number) => number;
  y: (value: number) => number;
}

/** plot maps values to positions in a box, in pixels. */
export const plot = (
  count: number,
  top: number,
  box: { left: number; top: number; width: number; height: number },
): Plot => ({
  x: (i) => box.left + (count > 1 ? (i / (count - 1)) * box.width : box.width),
  y: (v) => box.top + box.height * (1 - Math.min(Math.max(v / top, 0), 1)),
});

const px = (n: number) => String(Math.round(n * 10) / 10);

/** line returns the SVG path of a line; a run of one value is a short dash. */
export const line = (values: Values, { x, y }: Plot): string =>
  runs(values)
    .map(([a, b]) => {
      const points = values.slice(a, b + 1).map((v, i) => `${px(x(a + i))},${px(y(v ?? 0))}`);
      return a === b ? `M${points[0]}h1` : `M${points.join('L')}`;
    })
    .join('');

/** area returns the SVG path of the area under a line, down to zero. */
export const area = (values: Values, p: Plot): string =>
  runs(values)
    .map(
      ([a, b]) =>
        `M${px(p.x(a))},${px(p.y(0))}L${values
          .slice(a, b + 1)
          .map((v, i) => `${px(p.x(a + i))},${px(p.y(v ?? 0))}`)
          .join('L')}L${px(p.x(b))},${px(p.y(0))}Z`,
    )
    .join('');

/** indexAt returns the step at a position in the box. */
export const indexAt = (x: number, count: number, box: { left: number; width: number }): number =>
  Math.min(count - 1, Math.max(0, Math.round(((x - box.left) / Math.max(1, box.width)) * (count - 1))));

/** timeOf returns the time of a step, in UTC. */
export const timeOf = (from: string, stepSeconds: number, index: number): string =>
  new Date(Date.parse(from) + index * stepSeconds * 1000).toISOString();

/** ranges are the choices of periods, each with one point every few pixels. */
export const ranges: Range[] = [
  { name: '15m', seconds: 900, step: 5 },
  { name: '1h', seconds: 3600, step: 60 },
  { name: '24h', seconds: 86400, step: 300 },
];
