import { expect, test } from 'vitest';
import type { Draft } from './draft';
import { formatMicros } from './format';
import { usualMachine } from './machine';
import { fitting, isOf, kindOf, kindsOf, partsOf, take, type Offer } from './offer';

const gib = 2 ** 30;

const offer = (o: Partial<Offer>): Offer => ({
  kind: 'Offer',
  tier: 'standard',
  currency: 'EUR',
  reservedMicros: 1,
  fullUseMicros: 2,
  prices: [],
  free: 1,
  nodes: 1,
  ...o,
});

const none = offer({ tier: '', reservedMicros: 25 });
const slice = (model: string, percent: number, more: Partial<Offer> = {}) =>
  offer({
    model,
    pool: 'default',
    gpuVramBytes: 24 * gib,
    vramBytes: (24 * gib * percent) / 100,
    sharePercent: percent,
    reservedMicros: percent * 10,
    ...more,
  });
const offers = [
  none,
  slice('L4', 100, { free: 0 }),
  slice('L4', 50, { free: 2 }),
  slice('L4', 50, { tier: 'basic' }),
  slice('H100', 100, { pool: 'fast' }),
];

const draft: Draft = {
  name: '',
  project: '',
  app: '',
  image: '',
  medium: '',
  second: '',
  rootGib: '',
  flavor: '',
  vgpu: false,
  pool: '',
  model: '',
  vramGib: '4',
  share: '25',
  tier: '',
  networks: [],
  groups: [],
  keys: '',
  userData: '',
  password: '',
  machine: usualMachine,
  storagePool: '',
  whenFull: 'queue',
  until: '',
};

test('offers of a tier are grouped by model and pool', () => {
  const kinds = kindsOf(offers, 'standard');
  expect(kinds.map((k) => [k.model, k.pool, k.slices.length, k.fromMicros, k.free])).toEqual([
    ['L4', 'default', 2, 500, 2],
    ['H100', 'fast', 1, 1000, 1],
  ]);
  expect(kindsOf(offers, 'basic').map((k) => k.slices.length)).toEqual([1]);
  expect(kindsOf([none], 'standard')).toEqual([]);
});

test('a draft takes an offer, and is of it then', () => {
  for (const o of offers.filter((o) => o.tier !== 'basic')) {
    const d = take(draft, o);
    expect(offers.filter((x) => isOf(d, x))).toEqual([o]);
    expect(d.vgpu).toBe(o !== none);
  }
  expect(take(draft, offers[4])).toMatchObject({ pool: 'fast', model: 'H100', vramGib: '24', share: '100' });
  expect(isOf({ ...take(draft, offers[2]), vramGib: '5' }, offers[2]!)).toBe(false);
  expect(kindOf(draft)).toBe('');
});

test('an app gets the smallest slice that has enough VRAM and is free', () => {
  expect(fitting(offers, 10 * gib)).toBe(offers[2]);
  expect(fitting(offers, 20 * gib)).toBe(offers[4]);
  expect(fitting(offers, 100 * gib)).toBeUndefined();
});

test('the parts of a price are those of its meters', () => {
  const prices = [
    'vcpu-seconds',
    'memory-byte-seconds',
    'volume-byte-seconds',
    'vram-byte-seconds',
    'gpu-share-seconds',
    'gpu-nanoseconds',
  ].map((meter, i) => ({ meter, reservedMicros: 10 ** i, fullUseMicros: 2 * 10 ** i }));
  const of = (o: Offer) => Object.fromEntries(partsOf(o).map(([part, cost]) => [part, cost.reservedMicros]));
  expect(of(slice('L4', 50, { prices }))).toEqual({ compute: 11, disk: 100, vram: 1000, gpu: 110_000 });
  expect(Object.keys(of(none))).toEqual(['compute', 'disk']);
});

/** random returns pseudo-random integers below n (mulberry32). */
function randomOf(seed: number): (n: number) => number {
  return (n) => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return Math.floor((((t ^ (t >>> 14)) >>> 0) / 2 ** 32) * n);
  };
}

const meters = [
  'vcpu-seconds',
  'memory-byte-seconds',
  'volume-byte-seconds',
  'vram-byte-seconds',
  'gpu-share-seconds',
  'gpu-nanoseconds',
  'gpu-premium-nanoseconds',
  'gpu-basic-nanoseconds',
];

test('for thousands of random offers the parts add up, and what is shown is the price', () => {
  const random = randomOf(22);
  for (let i = 0; i < 3000; i++) {
    const prices = meters
      .filter((m) => i % 2 === 0 || !/gpu|vram/.test(m))
      .filter(() => random(4) > 0)
      .map((meter) => ({ meter, reservedMicros: random(10 ** random(9)), fullUseMicros: random(10 ** random(9)) }));
    const total = (end: 'reservedMicros' | 'fullUseMicros') => prices.reduce((n, p) => n + p[end], 0);
    const [reservedMicros, fullUseMicros] = [total('reservedMicros'), total('fullUseMicros')];
    const o = i % 2 === 0 ? slice('L4', 50, { prices }) : { ...none, prices };
    for (const end of ['reservedMicros', 'fullUseMicros'] as const)
      expect(partsOf(o).reduce((n, [, cost]) => n + cost[end], 0)).toBe(total(end));
    for (const micros of [reservedMicros, fullUseMicros, ...prices.map((p) => p.fullUseMicros)]) {
      const shown = formatMicros(micros, 'EUR', 'en');
      const off = Math.abs(Number(shown.replace(/[€,]/g, '')) - micros / 1e6);
      // Rounded to cents; prices below 1 EUR to a hundredth of that.
      expect(off, `${shown} for ${micros}`).toBeLessThanOrEqual(micros < 1_000_000 ? 0.000_050_001 : 0.005_000_001);
    }
  }
});
