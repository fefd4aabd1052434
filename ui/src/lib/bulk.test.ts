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

const pages = import.meta.glob<string>('../pages/**/*.tsx', { query: '?raw', import: 'default', eager: true });

/** Pages with a list whose dangerous actions are only for one object at a time. */
const alone: Record<string, string> = {
  '../pages/account/passkeys.tsx': 'each removal needs the password',
  '../pages/pools/pools.tsx': 'the pools are cards, not rows',
};

test('a page that deletes objects of a list deletes many at once, too', () => {
  const removing = Object.entries(pages)
    .filter(([, text]) => text.includes('<ObjectList') && /\bisDanger\b|\bdanger: true\b|\buseRemoval\b/.test(text))
    .map(([path, text]) => ({ path, bulk: /\bbulk=/.test(text) }));
  expect(removing.length).toBeGreaterThan(25);
  expect(removing.filter((p) => !p.bulk).map((p) => p.path)).toEqual(Object.keys(alone));
});
