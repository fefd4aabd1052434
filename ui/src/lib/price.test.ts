import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { costMicros, hourly, priceAt, type HourlyPrice, type Size } from './price';

const now = new Date('2026-05-01T00:00:00Z');

const hours = JSON.parse(
  readFileSync(new URL('../../../billing/invoice/testdata/hours.json', import.meta.url), 'utf8'),
) as {
  name: string;
  at: string;
  book: Parameters<typeof hourly>[0];
  size: Size;
  gpuPercent: number;
  cost: Record<keyof HourlyPrice, number>;
}[];

test.each(hours)('what rating makes of an hour: $name', ({ at, book, size, gpuPercent, cost }) => {
  const p = hourly(book, size, gpuPercent, new Date(at));
  expect(Object.fromEntries(Object.entries(p).map(([k, v]) => [k, Number(v)]))).toEqual(cost);
});

test('the price is the last that has begun', () => {
  const prices = [
    { meter: 'm', priceMicros: 1, per: 1 },
    { meter: 'm', priceMicros: 3, per: 1, from: '2026-06-01T00:00:00Z' },
    { meter: 'm', priceMicros: 2, per: 1, from: '2026-04-01T00:00:00Z' },
  ];
  const b = { currency: 'EUR', prices };
  expect(priceAt(b, 'm', now)?.priceMicros).toBe(2);
  expect(priceAt(b, 'm', new Date('2026-06-01T00:00:00Z'))?.priceMicros).toBe(3);
  expect(priceAt(b, 'm', new Date('2020-01-01T00:00:00Z'))?.priceMicros).toBe(1);
  expect(priceAt(b, 'other', now)).toBeUndefined();
});

test('sums beyond 2^53 are exact', () => {
  const units = 2n ** 60n;
  expect(costMicros({ meter: 'm', priceMicros: 3, per: 7 }, units)).toBe((units * 3n * 2n + 7n) / 14n);
});
