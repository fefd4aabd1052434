import { expect, test } from 'vitest';
import { area, axis, extent, indexAt, latest, line, niceStep, plot, runs, timeOf, timeTicks } from './chart';

const box = { left: 10, top: 0, width: 100, height: 50 };

test('axes end at a round number above all values', () => {
  expect(axis([[1, null, 30]], 'percent')).toEqual([0, 50, 100]);
  expect(axis([[130]], 'percent')).toEqual([0, 50, 100, 150]);
  expect(axis([[3 * 2 ** 30], [4 * 2 ** 30]], 'bytes')).toEqual([0, 1, 2, 3, 4].map((n) => n * 2 ** 30));
  expect(axis([[]], 'bytes-per-second')).toEqual([0, 256, 512, 768, 1024]);
  expect(axis([[null]], 'requests-per-second')).toEqual([0, 5, 10]);
  expect(niceStep(0.03, 'percent')).toBeCloseTo(0.05);
  expect(niceStep(0, 'bytes')).toBe(1);
});

test('gaps stay gaps', () => {
  const values = [1, 2, null, null, 3, null, 4, 4];
  expect(runs(values)).toEqual([
    [0, 1],
    [4, 4],
    [6, 7],
  ]);
  const p = plot(values.length, 4, box);
  expect(line(values, p).match(/M/g)).toHaveLength(3);
  expect(line(values, p)).toContain('h1');
  expect(area(values, p).match(/Z/g)).toHaveLength(3);
  expect(line([null, null], p)).toBe('');
});

test('values and places', () => {
  const p = plot(11, 100, box);
  expect([p.x(0), p.x(10), p.y(0), p.y(100), p.y(1000)]).toEqual([10, 110, 50, 0, 0]);
  expect(plot(1, 100, box).x(0)).toBe(110);
  expect(indexAt(62, 11, box)).toBe(5);
  expect([indexAt(-5, 11, box), indexAt(900, 11, box)]).toEqual([0, 10]);
  expect(latest([1, 7, null])).toBe(7);
  expect(latest([null])).toBeUndefined();
  expect(extent([1, null, 3])).toEqual({ low: 1, high: 3, mean: 2 });
  expect(extent([null])).toBeUndefined();
});

test('times are round, and few', () => {
  const from = '2026-11-23T03:58:00Z';
  expect(timeTicks(from, 5, 180, 4).map((i) => timeOf(from, 5, i).slice(11, 16))).toEqual(['04:00', '04:05', '04:10']);
  expect(timeTicks(from, 300, 288, 4).map((i) => timeOf(from, 300, i).slice(11, 16)).length).toBeLessThanOrEqual(5);
  expect(timeTicks(from, 5, 0, 4)).toEqual([]);
});
