import { expect, test } from 'vitest';
import { de } from './de';
import { en } from './en';
import { english, show, withWords } from './words';

test('a language that is chosen has the words of all pages once a page was opened', async () => {
  expect(await withWords(() => Promise.resolve('page'))()).toBe('page');
  expect(english).toEqual(en);
  expect(await show('de')).toEqual(de);
  expect(Object.keys(de).sort()).toEqual(Object.keys(en).sort());
});

test('code that cannot be loaded is an error, whatever the words are', async () => {
  await expect(withWords(() => Promise.reject(new Error('offline')))()).rejects.toThrow('offline');
});
