import { expect, test } from 'vitest';
import { endOf, pauseAfter } from './closed';

test('an end says why', () => {
  expect(endOf({ code: 4409, reason: 'somebody else is there' })).toEqual({
    why: 'refused',
    message: 'somebody else is there',
  });
  expect(endOf({ code: 1001, reason: 'the console ended' })).toEqual({ why: 'ended' });
  expect(endOf({ code: 1006, reason: '' })).toEqual({ why: 'lost' });
});

test('pauses grow, and no longer than a quarter of a minute', () => {
  expect([0, 1, 2, 3, 4, 100].map(pauseAfter)).toEqual([1000, 2000, 4000, 8000, 15_000, 15_000]);
});
