import { expect, test } from 'vitest';
import { choices } from './revenue';

test('periods, over the turn of a year', () => {
  const c = choices(new Date('2026-02-15T12:00:00Z'));
  expect(c[0]).toMatchObject({ kind: 'last12', from: '2025-03-01T00:00:00Z', to: '2026-03-01T00:00:00Z' });
  expect(c.slice(1, 3).map((x) => x.from)).toEqual(['2026-01-01T00:00:00Z', '2025-01-01T00:00:00Z']);
  expect(c[3]).toMatchObject({ id: '2026-02', to: '2026-03-01T00:00:00Z' });
  expect(c[5]).toMatchObject({ id: '2025-12', from: '2025-12-01T00:00:00Z', to: '2026-01-01T00:00:00Z' });
  expect(c).toHaveLength(15);
});
