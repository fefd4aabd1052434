// The portal's words. Keys are by place; {name} is filled in. All languages have the same keys, which the compiler
// checks. What only other pages than the first show is loaded with these (withWords).
import { first } from './en/first';
import type { later } from './en/later';

export const languages = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof languages;

type First = Record<keyof typeof first, string>;
type Later = Record<keyof typeof later, string>;
export type Key = keyof First | keyof Later;
export type Words = Record<Key, string>;

/** The parts of a language. English ones of the first pages come with the code, so that there are always some. */
const parts: Record<Language, { first: () => Promise<First>; later: () => Promise<Later> }> = {
  en: { first: () => Promise.resolve(first), later: () => import('./en/later').then((m) => m.later) },
  de: {
    first: () => import('./de/first').then((m) => m.first),
    later: () => import('./de/later').then((m) => m.later),
  },
};

interface Loaded {
  words: Words;
  first: boolean;
  later: boolean;
}

const loaded: Record<Language, Loaded> = {
  en: { words: { ...first } as Words, first: true, later: false },
  de: { words: {} as Words, first: false, later: false },
};

let shown: Language = 'en';
/** Whether a page was opened that needs the words of all pages. */
let all = false;

/** load loads the words of a language that the opened pages need. */
async function load(l: Language): Promise<Words> {
  const have = loaded[l];
  while (!have.first || (all && !have.later)) {
    const [some, more] = await Promise.all([parts[l].first(), all ? parts[l].later() : undefined]);
    Object.assign(have.words, some, more);
    have.first = true;
    have.later ||= more !== undefined;
  }
  return have.words;
}

/** show loads the words of a language, to which later calls of withWords' functions add. */
export async function show(l: Language): Promise<Words> {
  const words = await load(l);
  shown = l;
  return words;
}

/** english are those that there are without waiting. */
export const english = loaded.en.words;

/** withWords returns a function that loads code together with the words of all pages. */
export const withWords =
  <T>(code: () => Promise<T>) =>
  async () => {
    all = true;
    const [result] = await Promise.all([code(), load(shown)]);
    return result;
  };
