import { expect, test } from 'vitest';
import { classesOf, firstClass, quotable, quoteOf, typical } from './sample-machine';

const kinds = [{ id: 'l4', model: 'NVIDIA L4', pool: 'default', vramBytes: 24 * 2 ** 30 }];
const machine = {
  flavor: 'flv-1',
  gpu: 'l4',
  share: '50',
  diskGib: '20',
  storageClass: 'ssd',
  hours: '200',
  gpuPercent: '80',
};

test('a quote has the share of the VRAM', () => {
  expect(quoteOf(machine, kinds)).toEqual({
    flavor: 'flv-1',
    rootBytes: 20 * 2 ** 30,
    storageClass: 'ssd',
    hours: 200,
    model: 'NVIDIA L4',
    pool: 'default',
    vramBytes: 12 * 2 ** 30,
    sharePercent: 50,
    gpuPercent: 80,
  });
});

test('entries out of range are limited, and what is empty is omitted', () => {
  const odd = { ...machine, flavor: '', gpu: '', diskGib: 'x', storageClass: '', hours: '9999', gpuPercent: '-1' };
  expect(quoteOf(odd, kinds)).toEqual({ hours: 720 });
  expect(quoteOf({ ...machine, share: '0' }, kinds)).not.toHaveProperty('model');
  expect(quoteOf({ ...machine, share: '33', hours: '' }, kinds)).toMatchObject({ hours: 0, vramBytes: 8110 * 2 ** 20 });
  expect(quoteOf({ ...machine, diskGib: '1e99' }, kinds).rootBytes).toBe(2 ** 46);
  expect(quoteOf({ ...machine, diskGib: '0.1' }, kinds).rootBytes).toBe(102 * 2 ** 20);
});

test('storage classes begin with any, if any has a price', () => {
  const any = { meter: 'volume-byte-seconds', priceMicros: 1, per: 1 };
  const ssd = { ...any, where: { storageClass: 'ssd' } };
  expect(classesOf({ currency: 'EUR', prices: [any, ssd, ssd] })).toEqual(['ssd']);
  expect(firstClass({ currency: 'EUR', prices: [ssd, any] })).toBe('');
  expect(firstClass({ currency: 'EUR', prices: [ssd] })).toBe('ssd');
  expect(firstClass({ currency: 'EUR', prices: [] })).toBe('');
});

test('the sample begins with the flavor that is nearest to 8 vCPUs and 32 GiB', () => {
  const flavor = (vcpus: number, gib: number) => ({ spec: { vcpus, memoryBytes: gib * 2 ** 30 } });
  const all = [flavor(2, 2), flavor(16, 64), flavor(4, 8)];
  expect(typical(all)).toBe(all[1]);
  expect(typical([...all, flavor(8, 32)])).toEqual(flavor(8, 32));
  expect(typical([])).toBeUndefined();
});

test('edited prices are quoted only if the server would accept them', () => {
  const vcpu = { meter: 'vcpu-seconds', priceMicros: 1, per: 3600 };
  const book = (prices: object[], more = {}) =>
    quotable({ currency: 'EUR', prices: prices as (typeof vcpu)[], minimumMicros: 5, ...more });
  expect(book([vcpu])).toEqual({ currency: 'EUR', prices: [vcpu], discounts: [] });
  expect(book([vcpu, { ...vcpu, where: { flavor: 'flv-1' } }])).toBeDefined();
  expect(book([vcpu, vcpu])).toBeUndefined();
  expect(book([{ ...vcpu, from: '2026-01-01T00:30:00Z' }])).toBeUndefined();
  const tiers = (...upTo: number[]) => [{ ...vcpu, tiers: upTo.map((n) => ({ upTo: n, priceMicros: 1 })) }];
  expect(book(tiers(50, 100))).toBeDefined();
  expect(book(tiers(100, 50))).toBeUndefined();
  expect(book(tiers(0))).toBeUndefined();
  expect(book([vcpu], { discounts: [{ basisPoints: 0 }] })).toBeUndefined();
  expect(book([vcpu], { discounts: [{ basisPoints: 10_000 }] })).toBeDefined();
});
