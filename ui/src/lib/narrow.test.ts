import { expect, test } from 'vitest';
import { asked, namesOf, narrowed, unprefixed, type Facet } from './narrow';
import { queryOf, withParams } from './address';

const facets: Facet[] = [
  { id: 'state', label: 'State', any: 'All', options: [], field: 'state' },
  { id: 'node', label: 'Node', any: 'All', options: [] },
];

test('a narrowing is asked of the server: fields by a selector, others by their own parameter', () => {
  expect(asked({ search: 'x', labels: 'team=vision', state: 'Failed', node: 'node-1' }, facets, 'name')).toEqual({
    search: 'x',
    sort: 'name',
    labelSelector: 'team=vision',
    fieldSelector: 'state=Failed',
    node: 'node-1',
  });
  expect(asked({ sort: '-createdAt' }, facets, 'name')).toEqual({
    search: '',
    sort: '-createdAt',
    labelSelector: '',
    fieldSelector: '',
  });
});

test('a value in an address adds no condition of its own', () => {
  expect(asked({ state: 'Ready,spec.pool!=x' }, facets, 'name').fieldSelector).toBe('state=Readyspec.poolx');
});

test('the address restores it, and two lists of a page do not meet', () => {
  const names = namesOf(facets, 'pay.');
  expect(names).toEqual(['pay.search', 'pay.sort', 'pay.labels', 'pay.state', 'pay.node']);
  const hash = withParams('#/money?search=other', { 'pay.sort': '-createdAt', 'pay.labels': 'a=b,!c' });
  const query = queryOf(hash);
  const values = unprefixed(Object.fromEntries(names.map((n) => [n, query.get(n) ?? ''])), 'pay.');
  expect(values).toEqual({ search: '', sort: '-createdAt', labels: 'a=b,!c', state: '', node: '' });
  expect(narrowed(values)).toBe(true);
  expect(narrowed({ sort: 'name', search: '' })).toBe(false);
});
