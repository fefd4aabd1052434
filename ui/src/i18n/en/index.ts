// The portal's words. Keys are by place; {name} is filled in. Other languages have the same keys, which the compiler
// checks. What only other pages than the first show is loaded with these (withWords).
import { first } from './first';
import type { later } from './later';

export type Key = keyof typeof first | keyof typeof later;
export type Words = Record<Key, string>;

/** en has the words of the first pages, and all after addLater. */
export const en = { ...first } as Words;

/** addLater adds the words of all other pages. */
export const addLater = (words: typeof later) => void Object.assign(en, words);

/** withWords returns a function that loads code together with the words of all pages. */
export const withWords =
  <T>(load: () => Promise<T>) =>
  () =>
    Promise.all([load(), import('./later').then((m) => addLater(m.later))]).then(([loaded]) => loaded);
