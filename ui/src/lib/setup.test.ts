import { expect, test } from 'vitest';
import type { Instance } from '../api/client';
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
  nodes: [],
  gpus: 0,
  external: [],
  address: '',
  instances: [],
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

test('the nodes, the network, the address and a machine with a GPU are steps', () => {
  const node = (state: 'Ready' | 'Lost') => ({ kind: 'Node', meta: { name: 'n1' }, spec: {}, assignment: { state } });
  expect(done({ ...empty, nodes: [node('Ready')] }).nodes).toBe(true);
  expect(done({ ...empty, nodes: [node('Ready'), node('Lost')] }).nodes).toBe(false);
  const broken = {
    ...node('Ready'),
    status: { hardware: [{ id: 'kvm' as const, state: 'failed' as const, found: 'off' }] },
  };
  expect(done({ ...empty, nodes: [broken] }).nodes).toBe(false);
  const external = (phase: 'Ready' | 'Pending') => ({
    kind: 'ExternalNetwork',
    meta: { name: 'public' },
    spec: {},
    status: { phase },
  });
  expect(done({ ...empty, external: [external('Pending')] }).network).toBe(false);
  expect(done({ ...empty, external: [external('Ready')] }).network).toBe(true);
  expect(done({ ...empty, address: 'http://portal.example' }).address).toBe(false);
  expect(done({ ...empty, address: 'https://portal.example' }).address).toBe(true);
  const instance = (status: boolean) =>
    ({
      meta: { name: 'a' },
      status: { phase: 'Running', conditions: [{ type: 'GPUReady', status }] },
    }) as unknown as Instance;
  expect(done({ ...empty, gpus: 1, instances: [instance(false)] }).machine).toBe(false);
  expect(done({ ...empty, gpus: 1, instances: [instance(true)] }).machine).toBe(true);
  expect(done({ ...empty, instances: [instance(false)] }).machine).toBe(true);
});

test('one after the other, to a machine that runs CUDA', () => {
  expect(next('you')).toBe('nodes');
  expect(next('customer')).toBe('machine');
  expect(next('machine')).toBeUndefined();
});
