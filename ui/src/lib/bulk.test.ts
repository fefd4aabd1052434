import { expect, test } from 'vitest';
import { atOnce, runAll } from './bulk';

test('each has its own outcome, and a few run at once', async () => {
  const items = Array.from({ length: 11 }, (_, i) => i);
  const counts: number[] = [];
  let [running, most] = [0, 0];
  const failures = await runAll(
    items,
    async (i) => {
      most = Math.max(most, ++running);
      await Promise.resolve();
      running--;
      if (i % 5 === 3) throw new Error(`no ${i}`);
    },
    (n) => counts.push(n),
  );
  expect(failures.map((f) => f.item)).toEqual([3, 8]);
  expect(failures[0]?.error).toEqual(new Error('no 3'));
  expect(counts).toEqual(items.map((i) => i + 1));
  expect(most).toBe(atOnce);
});

test('nothing is done to nobody', async () => {
  expect(await runAll([], () => Promise.reject(new Error('called')))).toEqual([]);
});
