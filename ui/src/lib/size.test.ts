import { expect, test } from 'vitest';
import { bytesOf, sizeOf } from './size';

test('a size is a number and its unit', () => {
  expect(bytesOf({ number: '1.5', unit: 'GiB' })).toBe(1.5 * 2 ** 30);
  expect(['', '-1', 'x', 'Infinity'].map((number) => bytesOf({ number, unit: 'MiB' }))).toEqual([0, 0, 0, 0]);
  expect(sizeOf(2 ** 30)).toEqual({ number: '1', unit: 'GiB' });
  expect(sizeOf(100 * 2 ** 20)).toEqual({ number: '100', unit: 'MiB' });
  expect(sizeOf(1536 * 2 ** 30)).toEqual({ number: '1.5', unit: 'TiB' });
  expect(sizeOf(0).number).toBe('');
});
