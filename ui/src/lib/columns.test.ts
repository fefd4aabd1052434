import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';

const registry = readFileSync(new URL('../../../api/kinds.go', import.meta.url), 'utf8');

/** Fields that some kind can be sorted by: api/kinds.go and fieldsOfAll in api/field.go. */
const known = new Set([
  'id',
  'name',
  'createdAt',
  'organization',
  'project',
  ...[...registry.matchAll(/"((?:spec|status|assignment)\.[\w.]+|state)"/g)].map((m) => m[1]),
]);

const pages = import.meta.glob<string>('../pages/**/*.tsx', { query: '?raw', import: 'default', eager: true });

test('each column is sorted by a field that the API sorts by', () => {
  const used = Object.entries(pages).flatMap(([path, text]) =>
    [...text.matchAll(/\bsort: '-?([\w.]+)'/g)].map((m) => ({ path, field: m[1]! })),
  );
  expect(used.length).toBeGreaterThan(150);
  expect(used.filter(({ field }) => !known.has(field))).toEqual([]);
});
