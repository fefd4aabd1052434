// Holds the first pages to the words that are loaded with them.
import { expect, test } from 'vitest';
import { first } from './en/first';
import { later } from './en/later';

const sources = import.meta.glob<string>('../**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true });
const bySource = new Map(
  Object.entries(sources).map(([path, text]) => [new URL(path, 'file:///i18n/').pathname, text]),
);

/** What is loaded before the words of all pages are: app.tsx, routes.tsx. */
const firstPages = ['/main.tsx', '/shell/shell.tsx', '/pages/sign-in.tsx', '/pages/dashboard/dashboard.tsx'];
const statement = /^(?:import|export)\s(?!type\s)(?:[^'";]*?\sfrom\s)?'(\.[^']+)';/gm;

/** closure returns the sources that some import, without those of words. */
function closure(paths: string[]): Map<string, string> {
  const found = new Map<string, string>();
  const visit = (path: string) => {
    const text = bySource.get(path);
    if (text === undefined || found.has(path) || /^\/i18n\/.+\//.test(path)) return;
    found.set(path, text);
    for (const [, name = ''] of text.matchAll(statement)) {
      const to = new URL(name, `file://${path}`).pathname;
      ['.ts', '.tsx', '/index.ts', '/index.tsx'].forEach((end) => visit(to + end));
    }
  };
  paths.forEach(visit);
  return found;
}

/** mentioned returns the keys that a source has in full, as the stem of a plural, or whose beginning it has. */
function mentioned(text: string, keys: string[]): string[] {
  const literals = new Set([...text.matchAll(/'([^'\n]+)'/g)].map(([, literal = '']) => literal));
  const templates = [...text.matchAll(/`([\w.-]+\.)\$\{/g)].map(([, stem = '']) => stem);
  const stems = [...templates, ...[...literals].filter((l) => /^[\w-]+\.$/.test(l))];
  return keys.filter(
    (key) =>
      literals.has(key) || literals.has(key.replace(/\.(one|other)$/, '')) || stems.some((s) => key.startsWith(s)),
  );
}

test('the first pages show only words that are loaded with them', () => {
  const loaded = closure(firstPages);
  expect(loaded.size).toBeGreaterThan(50);
  const missing = [...loaded].flatMap(([path, text]) =>
    mentioned(text, Object.keys(later)).map((k) => `${path}: ${k}`),
  );
  expect(missing).toEqual([]);
});

test('no word is in both parts', () => {
  expect(Object.keys(first).filter((key) => key in later)).toEqual([]);
});

test('a mention is found, however it is written', () => {
  const keys = ['vol.title', 'vol.count.one', 'phase.Off', 'net.title'];
  expect(mentioned("t('vol.title')", keys)).toEqual(['vol.title']);
  expect(mentioned("count('vol.count', n)", keys)).toEqual(['vol.count.one']);
  expect(mentioned('t(`phase.${state}`)', keys)).toEqual(['phase.Off']);
  expect(mentioned("t(('net.' + x) as Key)", keys)).toEqual(['net.title']);
  expect(mentioned("t('vol.titles')", keys)).toEqual([]);
});

test('imports are followed, but not what is loaded later', () => {
  const loaded = closure(['/app.tsx']);
  expect(loaded.has('/routes.tsx')).toBe(true);
  expect(loaded.has('/parts/boundary.tsx')).toBe(true);
  expect(loaded.has('/pages/usage.tsx')).toBe(false);
});
