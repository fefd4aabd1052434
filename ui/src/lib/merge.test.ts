import { expect, test } from 'vitest';
import { merge, valueAt, withValue } from './merge';

test('what one of two has changed is as that one has it', () => {
  const base = { name: 'a', size: 1, tags: ['x'] };
  const m = merge(base, { ...base, size: 2 }, { name: 'b', size: 1, tags: ['x', 'y'] });
  expect(m.form).toEqual({ name: 'b', size: 2, tags: ['x', 'y'] });
  expect(m.taken).toEqual([
    { field: 'name', before: 'a' },
    { field: 'tags', before: ['x'] },
  ]);
  expect(m.clashes).toEqual([]);
});

test('what both have changed stays one’s own, and is told; the same change is none', () => {
  const base = { name: 'a', size: 1 };
  const m = merge(base, { name: 'b', size: 2 }, { name: 'b', size: 3 });
  expect(m.form).toEqual({ name: 'b', size: 2 });
  expect(m.clashes).toEqual([{ field: 'size' }]);
  expect(valueAt(m.was, { field: 'size' })).toBe(3);
  expect(m.taken).toEqual([]);
});

const row = (key: number, port: string) => ({ key, port });
const ports = (rows: { port: string }[]) => rows.map((r) => r.port);

test('rows: both have added one, each has changed another', () => {
  const base = { rules: [row(1, '22'), row(2, '80'), row(3, '443')] };
  const mine = { rules: [row(1, '2222'), row(2, '80'), row(3, '443'), row(4, '25')] };
  const theirs = { rules: [row(11, '22'), row(12, '8080'), row(13, '443'), row(14, '53')] };
  const m = merge(base, mine, theirs);
  expect(ports(m.form.rules)).toEqual(['2222', '8080', '443', '53', '25']);
  expect(m.taken.map((t) => t.before)).toEqual([row(2, '80'), undefined]);
  expect(m.clashes).toEqual([]);
});

test('rows: removed by one, changed by the other', () => {
  const base = { rules: [row(1, '22'), row(2, '80')] };
  const removed = merge(base, { rules: [row(1, '22')] }, { rules: [row(11, '22'), row(12, '8080')] });
  expect(ports(removed.form.rules)).toEqual(['22']);
  expect(removed.clashes).toEqual([{ field: 'rules', key: 2 }]);
  expect(ports(withValue(removed.form, removed.clashes[0]!, valueAt(removed.was, removed.clashes[0]!)).rules)).toEqual([
    '22',
    '8080',
  ]);
  const changed = merge(base, { rules: [row(1, '22'), row(2, '8080')] }, { rules: [row(11, '22')] });
  expect(ports(changed.form.rules)).toEqual(['22', '8080']);
  expect(ports(withValue(changed.form, changed.clashes[0]!, valueAt(changed.was, changed.clashes[0]!)).rules)).toEqual([
    '22',
  ]);
});

test('rows: one has removed what the other left; both have added the same', () => {
  const base = { rules: [row(1, '22'), row(2, '80')] };
  expect(ports(merge(base, { rules: [row(2, '80')] }, { rules: [row(11, '22'), row(12, '80')] }).form.rules)).toEqual([
    '80',
  ]);
  expect(ports(merge(base, base, { rules: [row(12, '80')] }).form.rules)).toEqual(['80']);
  const m = merge({ rules: [] }, { rules: [row(5, '53')] }, { rules: [row(11, '53')] });
  expect(ports(m.form.rules)).toEqual(['53']);
  expect([m.taken, m.clashes]).toEqual([[], []]);
});
