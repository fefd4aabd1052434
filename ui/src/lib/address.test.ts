import { expect, test } from 'vitest';
import { pathOf, queryOf, withParam } from './address';

test('an address has a path and a query', () => {
  expect(pathOf('')).toBe('/');
  expect(pathOf('#/instances?search=a/b')).toBe('/instances');
  expect(queryOf('#/instances?search=a%20b?c').get('search')).toBe('a b?c');
  expect(queryOf('#/instances').get('search')).toBeNull();
});

test('a value is written as it is read', () => {
  const hash = withParam('#/instances?x=1', 'search', '<b>&"#?');
  expect(hash).toMatch(/^#\/instances\?x=1&search=/);
  expect(queryOf(hash).get('search')).toBe('<b>&"#?');
  expect(withParam(hash, 'search', '')).toBe('#/instances?x=1');
  expect(withParam('#/instances?search=a', 'search', '')).toBe('#/instances');
});
