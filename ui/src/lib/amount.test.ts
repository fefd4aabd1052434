import { expect, test } from 'vitest';
import { decimal, parseMicros } from './amount';

test('amounts as people write them', () => {
  expect(parseMicros('12.50')).toBe(12_500_000);
  expect(parseMicros(' 12,5 ')).toBe(12_500_000);
  expect(parseMicros('0.000001')).toBe(1);
  expect(parseMicros('-3')).toBe(-3_000_000);
  expect(parseMicros('999999999')).toBe(999_999_999_000_000);
  for (const bad of ['', '1.0000001', '1e3', '1.2.3', '1,000.00', 'x', '.5', '1.', 'NaN'])
    expect(parseMicros(bad), bad).toBeUndefined();
});

test('and back, without digits that say nothing', () => {
  expect(decimal(12_500_000)).toBe('12.50');
  expect(decimal(1)).toBe('0.000001');
  expect(decimal(5_000)).toBe('0.005');
  expect(decimal(-3_000_000)).toBe('-3');
  expect(decimal(0)).toBe('0');
  for (const n of [1, 999_999, 1_000_000, 123_456_789, 999_999_999_000_000]) expect(parseMicros(decimal(n))).toBe(n);
});
