import { expect, test } from 'vitest';
import { classesOf, firstClass, quoteOf } from './sample-machine';

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
});

test('storage classes begin with any, if any has a price', () => {
  const any = { meter: 'volume-byte-seconds', priceMicros: 1, per: 1 };
  const ssd = { ...any, where: { storageClass: 'ssd' } };
  expect(classesOf({ currency: 'EUR', prices: [any, ssd, ssd] })).toEqual(['ssd']);
  expect(firstClass({ currency: 'EUR', prices: [ssd, any] })).toBe('');
  expect(firstClass({ currency: 'EUR', prices: [ssd] })).toBe('ssd');
  expect(firstClass({ currency: 'EUR', prices: [] })).toBe('');
});
