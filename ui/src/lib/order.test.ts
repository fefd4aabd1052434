import { expect, test } from 'vitest';
import { compare, directionOf, sorted, turned } from './order';

test('a header turns the order: ascending, descending, and ascending again', () => {
  expect(turned('name', 'createdAt')).toBe('createdAt');
  expect(turned('createdAt', 'createdAt')).toBe('-createdAt');
  expect(turned('-createdAt', 'createdAt')).toBe('createdAt');
  expect(directionOf('-createdAt', 'createdAt')).toBe('descending');
  expect(directionOf('createdAt', 'createdAt')).toBe('ascending');
  expect(directionOf('name', 'createdAt')).toBeUndefined();
});

test('values compare as a reader expects', () => {
  expect(['n10', 'n9', 'N1', ''].sort((a, b) => compare(a, b))).toEqual(['', 'N1', 'n9', 'n10']);
  expect([10, 9, undefined].sort((a, b) => compare(a, b))).toEqual([9, 10, undefined]); // sort always puts undefined last
  expect(compare(undefined, 1)).toBe(-1);
  expect(compare(false, true)).toBeLessThan(0);
});

test('rows of the same value stay as they were, in both directions', () => {
  const rows = [
    { n: 'a', v: 1 },
    { n: 'b', v: 0 },
    { n: 'c', v: 1 },
  ];
  const names = (sort: string) => sorted(rows, (r) => r.v, sort).map((r) => r.n);
  expect(names('v')).toEqual(['b', 'a', 'c']);
  expect(names('-v')).toEqual(['a', 'c', 'b']);
  expect(sorted(rows, undefined, 'x')).toEqual(rows);
});
