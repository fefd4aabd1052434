import { expect, test } from 'vitest';
import { merge, order } from './grouping.mjs';

const part = (name, bytes, imports = [], kind = 'code') => ({ name, bytes, imports, kind });
const entry = (name, imports) => ({ name, bytes: 10, imports });
const page = (name, files, parts = [name], bytes = Infinity) => ({ name, parts, most: { files, bytes } });

/** loaded returns the groups and entries that a page loads, with all that they import. */
function loaded(parts, groups, { parts: wanted }) {
  const of = (name) => groups.find((g) => g.includes(name)) ?? [name];
  const found = new Set();
  const visit = (group) => {
    if (found.has(group.join())) return;
    found.add(group.join());
    parts.filter((p) => group.includes(p.name)).forEach((p) => p.imports.forEach((i) => visit(of(i))));
  };
  wanted.forEach((name) => visit(of(name)));
  return found;
}

test('nothing is put together if all pages are within their limits', () => {
  const parts = [entry('a', ['x', 'y']), part('x', 5), part('y', 5)];
  expect(merge(parts, [page('a', 3)])).toEqual([['x'], ['y']]);
});

test('what the same pages load is put together first', () => {
  const parts = [entry('a', ['x', 'y', 'z']), entry('b', ['x', 'y']), part('x', 500), part('y', 500), part('z', 1)];
  expect(merge(parts, [page('a', 3), page('b', 9)])).toEqual([['x', 'y'], ['z']]);
});

test('as few files as necessary are put together', () => {
  const parts = [
    entry('a', ['core', 'small', 'large']),
    entry('b', ['core']),
    part('core', 100),
    part('small', 10),
    part('large', 900),
  ];
  expect(merge(parts, [page('a', 3), page('b', 2)])).toEqual([['core'], ['large', 'small']]);
  expect(merge(parts, [page('a', 2), page('b', 2)])).toEqual([['core', 'large', 'small']]);
});

test('a byte of a page with a weight counts more', () => {
  const parts = [
    entry('a', ['x', 'y', 'z']),
    entry('b', ['x']),
    entry('c', ['y']),
    entry('d', ['z']),
    part('x', 10),
    part('y', 10),
    part('z', 10),
  ];
  const heavy = (name) => ['b', 'c', 'd'].map((n) => ({ ...page(n, 9), weight: n === name ? 100 : 1 }));
  expect(merge(parts, [page('a', 3), ...heavy('b')])).toContainEqual(['y', 'z']);
  expect(merge(parts, [page('a', 3), ...heavy('c')])).toContainEqual(['x', 'z']);
  expect(merge(parts, [page('a', 3), ...heavy('d')])).toContainEqual(['x', 'y']);
});

test('a page near its limit of bytes is spared', () => {
  const parts = [
    entry('a', ['x', 'y', 'z']),
    entry('full', ['x']),
    entry('free', ['y']),
    part('x', 100),
    part('y', 100),
    part('z', 20),
  ];
  const pages = [page('a', 3), page('full', 9, ['full'], 115), page('free', 9, ['free'], 10_000)];
  expect(merge(parts, pages)).toContainEqual(['y', 'z']);
  const swapped = [page('a', 3), page('full', 9, ['full'], 10_000), page('free', 9, ['free'], 115)];
  expect(merge(parts, swapped)).toContainEqual(['x', 'z']);
});

test('no group imports itself through another', () => {
  // x imports z only through y, which is of another kind.
  const parts = [
    entry('a', ['x', 'y', 'z']),
    entry('b', ['y', 'z']),
    part('x', 1, ['y']),
    part('y', 1000, ['z'], 'other'),
    part('z', 1),
  ];
  expect(() => merge(parts, [page('a', 3), page('b', 9)])).toThrow(
    'page a loads 4 files, at most 3, and no more of them can be put together',
  );
});

test('what a group imports comes with it, and is counted', () => {
  const parts = [
    entry('a', ['small', 'x', 'y']),
    entry('b', ['x']),
    entry('c', ['y']),
    part('x', 10),
    part('y', 10),
    part('small', 1, ['heavy']),
    part('heavy', 5000, [], 'other'),
  ];
  // small costs x's or y's pages little, but heavy comes with it.
  expect(merge(parts, [page('a', 4), page('b', 9), page('c', 9)])).toContainEqual(['x', 'y']);
});

test('kinds and entries stay apart', () => {
  const parts = [entry('a', ['x', 's']), part('x', 1), part('s', 1, [], 'style')];
  expect(() => merge(parts, [page('a', 2)])).toThrow('page a loads 3 files, at most 2');
});

test('unknown names and circles are errors', () => {
  expect(() => merge([part('x', 1, ['y'])], [])).toThrow('x imports y, which is not a part');
  expect(() => merge([part('x', 1)], [page('a', 1)])).toThrow('page a loads a, which is not a part');
  expect(() => merge([part('x', 1), part('x', 2)], [])).toThrow('two parts have the same name');
  expect(() => order([part('x', 1, ['y']), part('y', 1, ['x'])])).toThrow('x imports itself, through y');
});

/** random returns numbers below 1 that are the same for the same seed (mulberry32). */
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

test.each([1, 2, 3, 4, 5, 6, 7, 8])('any graph: limits hold, without circles, in any order of parts (%i)', (seed) => {
  const next = random(seed);
  const shared = Array.from({ length: 40 }, (_, n) => {
    const imports = Array.from({ length: n }, (__, i) => `s${i}`).filter(() => next() < 3 / (n + 1));
    return part(`s${n}`, Math.ceil(next() * 1000), imports, next() < 0.2 ? 'style' : 'code');
  }).map((p) => (p.kind === 'style' ? { ...p, imports: [] } : p));
  const entries = Array.from({ length: 15 }, (_, n) =>
    entry(
      `e${n}`,
      shared.filter(() => next() < 0.3).map((p) => p.name),
    ),
  );
  const parts = [...shared, ...entries];
  const pages = entries.map((e) => page(e.name, 6));
  const groups = merge(parts, pages);
  const known = groups.flat().sort();
  expect(known).toEqual(shared.map((p) => p.name).sort());
  for (const p of pages) expect(loaded(parts, groups, p).size).toBeLessThanOrEqual(6);
  const of = (name) => (groups.find((g) => g.includes(name)) ?? [name]).join();
  const merged = new Map();
  for (const p of parts) {
    const imports = merged.get(of(p.name)) ?? new Set();
    merged.set(of(p.name), imports);
    p.imports.map(of).forEach((i) => i !== of(p.name) && imports.add(i));
  }
  expect(order([...merged].map(([name, imports]) => ({ name, imports: [...imports] })))).toHaveLength(merged.size);
  expect(merge([...parts].reverse(), pages)).toEqual(groups);
});
