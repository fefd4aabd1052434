import { expect, test } from 'vitest';
import { costMicros, hourly, priceAt } from './price';

const gib = 2 ** 30;
const book = {
  currency: 'EUR',
  prices: [
    { meter: 'vcpu-seconds', priceMicros: 10_000, per: 3600 },
    { meter: 'memory-byte-seconds', priceMicros: 5_000, per: gib * 3600 },
    { meter: 'volume-byte-seconds', priceMicros: 50_000, per: gib * 3600 * 720 },
    { meter: 'gpu-nanoseconds', priceMicros: 1_800_000, per: 3_600_000_000_000 },
    { meter: 'vram-byte-seconds', priceMicros: 10_000, per: gib * 3600 },
  ],
};
const now = new Date('2026-05-01T00:00:00Z');

test('an instance with half a GPU, by the default price book', () => {
  const p = hourly(book, { vcpus: 4, memoryBytes: 8 * gib, rootBytes: 40 * gib, vramBytes: 8 * gib, sharePercent: 50 }, now);
  expect(p).toEqual({ compute: 80_000n, disk: 2_778n, vram: 80_000n, gpu: 900_000n, gpuPercent: 50, total: 1_062_778n });
});

test('without a GPU neither GPU time nor VRAM costs', () => {
  const p = hourly(book, { vcpus: 1, memoryBytes: gib, rootBytes: 0, vramBytes: 0, sharePercent: 50 }, now);
  expect(p.total).toBe(15_000n);
  expect(p.gpuPercent).toBe(0);
});

test('best effort may use the whole GPU', () => {
  expect(hourly(book, { vcpus: 0, memoryBytes: 0, rootBytes: 0, vramBytes: gib, sharePercent: 0 }, now).gpu).toBe(1_800_000n);
});

test('a tier has its own price, or else the standard one', () => {
  const size = { vcpus: 0, memoryBytes: 0, rootBytes: 0, vramBytes: gib, sharePercent: 100, tier: 'premium' as const };
  expect(hourly(book, size, now).gpu).toBe(1_800_000n);
  const tiered = { ...book, prices: [...book.prices, { meter: 'gpu-premium-nanoseconds', priceMicros: 2_700_000, per: 3_600_000_000_000 }] };
  expect(hourly(tiered, size, now).gpu).toBe(2_700_000n);
  expect(hourly(tiered, { ...size, tier: 'basic' }, now).gpu).toBe(1_800_000n);
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
