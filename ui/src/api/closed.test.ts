import { expect, test } from 'vitest';
import { endOf, pauseAfter, retries } from './closed';

test('an end says why', () => {
  expect(endOf({ code: 4409, reason: 'somebody else is there' })).toEqual({
    why: 'refused',
    message: 'somebody else is there',
  });
  expect(endOf({ code: 1001, reason: 'the console ended' })).toEqual({ why: 'ended' });
  expect(endOf({ code: 1006, reason: '' })).toEqual({ why: 'lost' });
});

test('a shell that was left or refused is not opened again by itself', () => {
  expect(endOf({ code: 1000, reason: '' })).toEqual({ why: 'exited' });
  expect([1000, 1001, 1006, 4403, 4409, 4503].map((code) => retries('shell', code))).toEqual([
    false,
    true,
    true,
    false,
    false,
    true,
  ]);
  expect([1000, 4409].map((code) => retries('console', code))).toEqual([true, true]);
});

test('pauses grow, and no longer than a quarter of a minute', () => {
  expect([0, 1, 2, 3, 4, 100].map(pauseAfter)).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000]);
});
