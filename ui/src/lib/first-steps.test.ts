import { expect, test } from 'vitest';
import type { Instance } from '../api/client';
import { firstSteps } from './first-steps';

const instance = (ready?: boolean): Instance => ({
  kind: 'Instance',
  meta: { name: 'a' },
  spec: { flavor: 'flv-1' },
  ...(ready !== undefined && { status: { conditions: [{ type: 'GPUReady', status: ready }] } }),
});

test('steps are done as things are there', () => {
  const done = (keys: number, all: Instance[]) => firstSteps(keys, all).map((s) => s.done);
  expect(done(0, [])).toEqual([false, false, false]);
  expect(done(1, [])).toEqual([true, false, false]);
  expect(done(0, [instance()])).toEqual([true, true, false]); // users who sign in with a password need no key
  expect(done(1, [instance(false), instance(true)])).toEqual([true, true, true]);
});
