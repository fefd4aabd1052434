import { expect, test } from 'vitest';
import { groupsOf } from './price-groups';

const gib = 2 ** 30;
const gpuHour = 3_600_000_000_000;
const book = {
  currency: 'EUR',
  prices: [
    { meter: 'egress-bytes', priceMicros: 5_000, per: gib, tiers: [{ upTo: 100, priceMicros: 0 }] },
    { meter: 'vcpu-seconds', priceMicros: 10_000, per: 3600 },
    { meter: 'gpu-nanoseconds', priceMicros: 1_800_000, per: gpuHour, where: { model: 'NVIDIA L4' } },
    { meter: 'gpu-nanoseconds', priceMicros: 3_000_000, per: gpuHour, where: { model: 'NVIDIA H100' } },
    { meter: 'gpu-share-seconds', priceMicros: 1_000_001, per: 360_000 },
    { meter: 'volume-byte-seconds', priceMicros: 50_000, per: gib * 3600 * 720, where: { storageClass: 'ssd' } },
    { meter: 'gpu-launches', priceMicros: 1, per: 7 },
  ],
};

test('prices are grouped in customary units, with what a month costs', () => {
  const groups = groupsOf(book);
  expect(groups.map((g) => g.group)).toEqual(['compute', 'gpu', 'storage', 'network', 'other']);
  const [compute, gpu, storage, network, other] = groups.map((g) => g.lines);
  expect(compute?.[0]).toMatchObject({ each: '0.01', month: 7_200_000n, unit: { id: 'vcpu-hour' } });
  expect(storage?.[0]).toMatchObject({ each: '0.05', month: 50_000n, unit: { id: 'gib-month' } });
  expect(network?.[0]).toMatchObject({ each: '0.005', tiers: [{ upTo: 100, each: '0' }] });
  expect(network?.[0]?.month).toBeUndefined();
  expect(other?.[0]).toMatchObject({ price: { per: 7 } });
  expect(other?.[0]?.each).toBeUndefined();
  // Without a condition first, then by model.
  expect(gpu?.map((l) => l.price.where?.model)).toEqual([undefined, 'NVIDIA H100', 'NVIDIA L4']);
  expect(gpu?.[1]).toMatchObject({
    each: '3',
    month: 2_160_000_000n,
    slices: [1_080_000_000n, 540_000_000n, 216_000_000n],
  });
  // 1.000001 × 720 × 25 % = 180.00018
  expect(gpu?.[0]?.slices?.[1]).toBe(180_000_180n);
});

test('a book without prices has no groups', () => {
  expect(groupsOf({ currency: 'EUR', prices: [] })).toEqual([]);
});
