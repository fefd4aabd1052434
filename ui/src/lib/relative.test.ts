import { expect, test } from 'vitest';
import { relative } from './relative';

const now = Date.parse('2026-11-28T10:00:00Z');
const of = (at: string, language = 'en') => relative(Date.parse(at), now, language);

test('a moment in the largest unit that it fills', () => {
  expect(of('2026-11-28T09:59:58Z')).toBe('now');
  expect(of('2026-11-28T09:58:01Z')).toBe('1 minute ago');
  expect(of('2026-11-28T05:00:00Z')).toBe('5 hours ago');
  expect(of('2026-11-27T09:00:00Z')).toBe('yesterday');
  expect(of('2026-10-01T10:00:00Z')).toBe('last month');
  expect(of('2024-10-01T10:00:00Z')).toBe('2 years ago');
  expect(of('2026-12-01T10:00:01Z')).toBe('in 3 days');
  expect(of('2026-11-28T09:55:00Z', 'de')).toBe('vor 5 Minuten');
});
