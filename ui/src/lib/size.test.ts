import { expect, test } from 'vitest';
import { parseSize } from './size';
import { sizeFlag } from './shell';

test('a size has a unit', () => {
  expect(parseSize('4GiB')).toBe(4 * 2 ** 30);
  expect(parseSize(' 1.5 GiB ')).toBe(1.5 * 2 ** 30);
  expect(parseSize('512MiB')).toBe(512 * 2 ** 20);
  expect(parseSize('0')).toBe(0);
  for (const bad of ['', '4', '4GB', 'GiB', '-1GiB', '1e3GiB']) expect(parseSize(bad), bad).toBeNaN();
});

test('what is written is read again', () => {
  for (const n of [1, 2 ** 20, 2 ** 30, 3 * 2 ** 29]) expect(parseSize(n < 2 ** 20 ? `${n}B` : sizeFlag(n))).toBe(n);
});
