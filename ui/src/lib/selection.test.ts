import { expect, test } from 'vitest';
import { between, extent, kept, nobody, toggled } from './selection';

const shown = ['a', 'b', 'c', 'd'];

test('a row is selected and let go', () => {
  const one = toggled(nobody, 'b');
  expect([...one]).toEqual(['b']);
  expect(toggled(one, 'b').size).toBe(0);
  expect(nobody.size).toBe(0);
});

test('what is no longer shown is no longer selected', () => {
  const two = new Set(['a', 'x']);
  expect([...kept(two, shown)]).toEqual(['a']);
  const one = new Set(['a']);
  expect(kept(one, shown)).toBe(one); // so that nothing is rendered again
});

test('a range is selected in either direction, and from nowhere one row', () => {
  expect([...between(nobody, shown, 'c', 'a')].sort()).toEqual(['a', 'b', 'c']);
  expect([...between(new Set(['d']), shown, 'a', 'b')].sort()).toEqual(['a', 'b', 'd']);
  expect([...between(nobody, shown, 'gone', 'b')]).toEqual(['b']);
});

test('all, some or none', () => {
  expect(extent(nobody, shown)).toBe('none');
  expect(extent(new Set(['a']), shown)).toBe('some');
  expect(extent(new Set(shown), shown)).toBe('all');
});
