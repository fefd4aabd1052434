import { expect, test } from 'vitest';
import { startOf } from './effective';

test('a change holds from the next hour, day or month on', () => {
  const at = new Date('2026-12-31T23:59:59Z');
  expect(startOf('hour', at)).toBe('2027-01-01T00:00:00Z');
  expect(startOf('day', at)).toBe('2027-01-01T00:00:00Z');
  expect(startOf('month', at)).toBe('2027-01-01T00:00:00Z');
  const noon = new Date('2026-02-10T12:00:00Z');
  expect(startOf('hour', noon)).toBe('2026-02-10T13:00:00Z');
  expect(startOf('day', noon)).toBe('2026-02-11T00:00:00Z');
  expect(startOf('month', noon)).toBe('2026-03-01T00:00:00Z');
});
