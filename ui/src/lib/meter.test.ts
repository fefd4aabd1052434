import { expect, test } from 'vitest';
import { decimalOf, exact, meters, shown, unitFor, unitOf, units } from './meter';

const hour = 3600n;
const gib = 2n ** 30n;

test('the prices of a new cluster, in units of people', () => {
  // billing/default.go
  const defaults: [string, number, bigint, string, string][] = [
    ['vcpu-seconds', 10_000, hour, '0.01', 'vcpu-hour'],
    ['memory-byte-seconds', 5_000, gib * hour, '0.005', 'gib-hour'],
    ['volume-byte-seconds', 50_000, gib * hour * 720n, '0.05', 'gib-month'],
    ['snapshot-byte-seconds', 50_000, gib * hour * 720n, '0.05', 'gib-month'],
    ['address-seconds', 5_000, hour, '0.005', 'hour'],
    ['egress-bytes', 5_000, gib, '0.005', 'gib'],
    ['gpu-nanoseconds', 1_800_000, hour * 1_000_000_000n, '1.8', 'gpu-hour'],
    ['gpu-premium-nanoseconds', 2_700_000, hour * 1_000_000_000n, '2.7', 'gpu-hour'],
    ['gpu-basic-nanoseconds', 900_000, hour * 1_000_000_000n, '0.9', 'gpu-hour'],
    ['gpu-share-seconds', 1_800_000, 360_000n, '1.8', 'gpu-hour'],
    ['vram-byte-seconds', 10_000, gib * hour, '0.01', 'gib-hour'],
    ['gpu-copy-bytes', 0, 2n ** 40n, '0', 'tib'],
    ['gpu-launches', 0, 1_000_000n, '0', 'million'],
  ];
  expect(defaults.map(([m]) => m)).toEqual(meters);
  for (const [meter, priceMicros, per, text, unit] of defaults) {
    const u = unitOf(meter, per);
    expect(u?.id, meter).toBe(unit);
    expect(shown({ priceMicros, per }, u!.per), meter).toBe(text);
    expect(exact(text, u!.per), meter).toEqual({ priceMicros: BigInt(priceMicros), per });
  }
});

test('every price that can be written comes back as it was', () => {
  for (const meter of meters)
    for (const u of units[meter]!)
      for (const text of ['0', '0.000001', '0.01', '1.8', '123.456789', '999999999', '0.0000004']) {
        const e = exact(text, u.per);
        if (!e) continue; // too large for JSON
        expect(shown(e, u.per), `${meter} ${u.id} ${text}`).toBe(text);
        expect(e.per % u.per).toBe(0n);
        const chosen = unitFor(meter, e); // may be another unit in which the number is a finite decimal
        expect(chosen && shown(e, chosen.per), `${meter} ${text}`).toBeDefined();
      }
});

test('more than six digits are the price of more units', () => {
  expect(exact('0.0000004', 3600n)).toEqual({ priceMicros: 2n, per: 3600n * 5n });
  expect(exact('0.1234567', 3600n)).toEqual({ priceMicros: 1_234_567n, per: 36_000n });
});

test('what is no price, or does not fit', () => {
  for (const bad of ['', '-1', '1e3', '1,000.0', 'free', '0.1.2', '١']) expect(exact(bad, hour), bad).toBeUndefined();
  expect(exact('99999999999', hour)).toBeUndefined();
  expect(exact('0.0000000000001', gib * hour * 720n)).toBeUndefined();
});

test('a price per something else is not shown as what it is not', () => {
  expect(unitOf('vcpu-seconds', 7)).toBeUndefined();
  expect(shown({ priceMicros: 1, per: 7 }, hour)).toBeUndefined();
  expect(unitFor('vcpu-seconds', { priceMicros: 1, per: 7 })).toBeUndefined();
  expect(shown({ priceMicros: 1, per: 1 }, hour)).toBe('0.0036'); // one micro-unit per second
});

test('decimals', () => {
  expect(decimalOf(1_500_000)).toBe('1.5');
  expect(decimalOf(1n)).toBe('0.000001');
});
