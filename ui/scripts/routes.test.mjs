import { expect, test } from 'vitest';
import { largestRoutes, loads, routes } from './routes.mjs';

const chunk = (file, { entry, imports = [], later = [], bytes = 1000, styles = [] } = {}) => ({
  file,
  bytes,
  entry,
  imports,
  later,
  styles,
});
const style = { file: 'all.css', bytes: 500 };

const portal = (page = {}) => [
  chunk('index', {
    entry: 'index.html',
    imports: ['core'],
    later: ['shell', 'signin', 'dash', 'list', 'de', 'de2', 'fr', 'fr2', 'en'],
  }),
  chunk('core', { styles: [style] }),
  chunk('shell', { entry: 'src/shell/shell.tsx', imports: ['core'] }),
  chunk('signin', { entry: 'src/pages/sign-in.tsx' }),
  chunk('dash', { entry: 'src/pages/dashboard/dashboard.tsx', later: ['card1', 'card2'] }),
  chunk('card1', { entry: 'card1.tsx' }),
  chunk('card2', { entry: 'card2.tsx' }),
  chunk('list', { entry: 'src/pages/list.tsx', imports: ['shared'], later: ['tab'], styles: [style], ...page }),
  chunk('shared', { imports: ['core'] }),
  chunk('tab', { entry: 'src/pages/tab.tsx', bytes: 900_000 }),
  chunk('de', { entry: 'src/i18n/de/first.ts', bytes: 10 }),
  chunk('de2', { entry: 'src/i18n/de/later.ts', bytes: 90 }),
  chunk('en', { entry: 'src/i18n/en/later.ts', bytes: 50 }),
  chunk('fr', { entry: 'src/i18n/fr/first.ts', bytes: 30 }),
  chunk('fr2', { entry: 'src/i18n/fr/later.ts', bytes: 40 }),
];

test('routes are pages with what they load later, and with the largest language', () => {
  const all = routes(portal());
  expect(all.map((r) => r.name)).toEqual([
    'src/pages/sign-in.tsx',
    'src/pages/dashboard/dashboard.tsx',
    'src/pages/dashboard/dashboard.tsx with card1.tsx with card2.tsx',
    'src/pages/list.tsx',
    'src/pages/list.tsx with src/pages/tab.tsx',
  ]);
  const french = 'src/i18n/fr/first.ts';
  const german = ['src/i18n/de/first.ts', 'src/i18n/de/later.ts'];
  expect(all[0].entries).toEqual(['index.html', 'src/pages/sign-in.tsx', french]);
  expect(all[1].entries).toEqual(['index.html', 'src/shell/shell.tsx', 'src/pages/dashboard/dashboard.tsx', french]);
  expect(all[3].entries).toEqual(['index.html', 'src/shell/shell.tsx', 'src/pages/list.tsx', ...german]);
});

test('a route loads each file once, styles too', () => {
  const files = loads(portal(), routes(portal())[3]).map((f) => f.file);
  expect(files.sort()).toEqual(['all.css', 'core', 'de', 'de2', 'index', 'list', 'shared', 'shell']);
});

test('the largest routes by files and by bytes; parts that are loaded later may be large', () => {
  const largest = largestRoutes(portal(), routes(portal()));
  expect(largest.files.files).toBe(9);
  expect(largest.bytes).toMatchObject({ name: 'src/pages/dashboard/dashboard.tsx with card1.tsx with card2.tsx' });
  expect(largest.bytes.bytes).toBe(6600);
});

test('a route above a limit is an error', () => {
  const large = portal({ bytes: 350_000 });
  expect(() => largestRoutes(large, routes(large))).toThrow(/^src\/pages\/list.tsx loads 8 files of code with 354600 /);
  const extra = Array.from({ length: 14 }, (_, n) => chunk(`x${n}`));
  const many = [...portal({ imports: extra.map((c) => c.file) }), ...extra];
  expect(() => largestRoutes(many, routes(many))).toThrow('src/pages/list.tsx loads 21 files of code');
});

test('a bundle without a page that it must have is an error', () => {
  const chunks = portal().filter((c) => c.entry !== 'index.html');
  expect(() => routes(chunks)).toThrow('the bundle has no file for index.html');
});
