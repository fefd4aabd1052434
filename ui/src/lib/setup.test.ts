import { expect, test } from 'vitest';
import type { There } from '../api/setup';
import { done, example, fresh, next } from './setup';

const book = (name: string, generation: number) => ({
  kind: 'PriceBook',
  meta: { name, generation },
  spec: { currency: 'EUR', prices: [] },
});
const image = (phase: 'Ready' | 'Importing') => ({
  kind: 'Image',
  meta: { name: 'debian-13' },
  spec: { format: 'qcow2' as const, public: true },
  status: { phase },
});
const empty: There = {
  totp: false,
  branding: {},
  books: [book('default', 1)],
  images: [],
  flavors: [],
  pools: [],
  organizations: [],
};

test('a new cluster', () => {
  expect(fresh(empty)).toBe(true);
  expect(Object.values(done(empty)).some(Boolean)).toBe(false);
});

test('each step is done by what is there', () => {
  expect(done({ ...empty, books: [book('default', 2)] }).prices).toBe(true);
  expect(done({ ...empty, books: [book('default', 1), book('usd', 1)] }).prices).toBe(true);
  expect(done({ ...empty, images: [image('Importing')] }).images).toBe(false);
  expect(done({ ...empty, images: [image('Ready')] }).images).toBe(true);
  expect(fresh({ ...empty, images: [image('Importing')] })).toBe(false);
  expect(done({ ...empty, branding: { revision: 7 } }).brand).toBe(true);
  expect(example(book('other', 1))).toBe(false);
});

test('one after the other', () => {
  expect(next('you')).toBe('brand');
  expect(next('customer')).toBeUndefined();
});
