// Holds the portal's texts to docs/glossary.md.
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { de } from './de';
import { en } from './en';

const document = readFileSync(new URL('../../../docs/glossary.md', import.meta.url), 'utf8');

interface Forbidden {
  word: string;
  term: string;
  find: RegExp;
  /** within are the terms that contain the word, in which it may be used. */
  within: RegExp[];
}

/** forbidden are the words of one column of the document's tables. */
function forbidden(text: string, column: number, term: number): Forbidden[] {
  const rows = text
    .split('\n')
    .filter((l) => /^\| (?!Term |---)/.test(l))
    .map((l) => l.split('|').map((c) => c.trim()));
  const terms = rows.map((cells) => cells[term] ?? '');
  return rows.flatMap((cells) =>
    [...(cells[column] ?? '').matchAll(/`([^`]+)`/g)].map(([, word = '']) => entry(word, cells[term] ?? '', terms)),
  );
}

function entry(word: string, term: string, terms: string[]): Forbidden {
  const find = whole(word, '', word.toLowerCase() === term.toLowerCase() ? 'u' : 'iu');
  return {
    word,
    term,
    find,
    within: terms.filter((t) => find.test(t) || find.test(`${t}s`)).map((t) => whole(t, 's?', 'giu')),
  };
}

/** whole finds a text as whole words, with a pattern after it. */
function whole(text: string, after: string, flags: string): RegExp {
  const escaped = text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}-])${escaped}${after}(?![\\p{L}\\p{N}-])`, flags);
}

const english = forbidden(document, 4, 1);
const german = forbidden(document, 5, 3);

/** said is a text without commands, paths, places and what is named as code. */
const said = (text: string) => text.replace(/`[^`]*`|\bbasalt( [a-z-]+)+|\{\w+\}|\/[\w.]+\/[\w./-]+/g, '…');

const faults = (texts: Record<string, string>, words: Forbidden[]) =>
  Object.entries(texts).flatMap(([key, text]) =>
    words
      .filter(({ find, within }) => find.test(within.reduce((rest, term) => rest.replace(term, '…'), said(text))))
      .map(({ word, term }) => `${key}: ${JSON.stringify(text)} says “${word}”, docs/glossary.md says “${term}”`),
  );

test('the glossary has words for both languages', () => {
  expect(english.length).toBeGreaterThan(50);
  expect(german.length).toBeGreaterThan(30);
});

test('English texts keep to the glossary', () => expect(faults(en, english)).toEqual([]));

test('German texts keep to the glossary', () => expect(faults(de, german)).toEqual([]));

test('a word that is not to be used is found', () => {
  const found = (text: string, words = english) => faults({ key: text }, words).length;
  expect(found('VRAM Promised')).toBe(1);
  expect(found('Ways outside')).toBe(1);
  expect(found('The id of {id}')).toBe(1);
  expect(found('ID')).toBe(0);
  expect(found('Payment cards, and a payment card')).toBe(0);
  expect(found('A payment card in a card')).toBe(1);
  expect(found('A compromised discard, as `id` or basalt login')).toBe(0);
  expect(found('Einmalcodes für das Netz', german)).toBe(2);
  expect(found('Netzwerk', german)).toBe(0);
});
