import { expect, test } from 'vitest';
import { parseRecent, withRecent } from './recent';

const to = (n: number) => ({ href: `/instances/${n}`, name: String(n) });

test('the newest first, each once, a few of them', () => {
  expect(withRecent([to(1), to(2)], to(2))).toEqual([to(2), to(1)]);
  expect([1, 2, 3, 4, 5, 6, 7, 8].reduce((l, n) => withRecent(l, to(n)), [] as ReturnType<typeof to>[])).toHaveLength(
    6,
  );
});

test('what is stored is not trusted', () => {
  expect(parseRecent(null)).toEqual([]);
  expect(parseRecent('{')).toEqual([]);
  expect(parseRecent('"x"')).toEqual([]);
  expect(parseRecent(JSON.stringify([null, { href: 'javascript:alert(1)', name: 'x' }, to(1)]))).toEqual([to(1)]);
});
