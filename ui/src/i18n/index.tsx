// Languages: the texts of one, in which places are filled in.
import { createContext, use, useEffect, useMemo, useState, type ReactNode } from 'react';
import { english, languages, show, type Key, type Language, type Words } from './words';

export { languages, withWords, type Key, type Language } from './words';

const stored = 'basalt.language';

/** fill puts values into a text's {places}. */
export const fill = (text: string, values: Record<string, string | number> = {}) =>
  text.replace(/\{(\w+)\}/g, (whole, name: string) => (name in values ? String(values[name]) : whole));

/** Keys of texts that depend on a number. */
export type Counted = Key extends infer K ? (K extends `${infer Stem}.one` ? Stem : never) : never;

export interface Translation {
  language: Language;
  t: (key: Key, values?: Record<string, string | number>) => string;
  /** count chooses between KEY.one and KEY.other; {n} is the number. */
  count: (key: Counted, n: number) => string;
  has: (key: string) => key is Key;
  choose: (l: Language) => void;
}

/** hasChosen reports whether a language was chosen in this browser. */
export const hasChosen = () => localStorage.getItem(stored) !== null;

export function translation(
  language: Language,
  words: Words,
  choose: (l: Language) => void = () => undefined,
): Translation {
  const t: Translation['t'] = (key, values) => fill(words[key], values);
  const plural = new Intl.PluralRules(language);
  const number = new Intl.NumberFormat(language);
  return {
    language,
    t,
    choose,
    count: (key, n) => t(`${key}.${plural.select(n) === 'one' ? 'one' : 'other'}`, { n: number.format(n) }),
    has: (key): key is Key => key in words,
  };
}

const Context = createContext<Translation>(translation('en', english));
export const useText = () => use(Context);

function initial(): Language {
  const wanted = [localStorage.getItem(stored), ...navigator.languages.map((l) => l.slice(0, 2))];
  return (wanted.find((l) => l !== null && l in languages) as Language | undefined) ?? 'en';
}

/** LanguageProvider renders nothing until the words of the first pages are there. */
export function LanguageProvider({ children }: { children: ReactNode }) {
  const [wanted, setWanted] = useState<Language>(initial);
  const [have, setHave] = useState<{ language: Language; words: Words } | null>(
    wanted === 'en' ? { language: wanted, words: english } : null,
  );
  useEffect(() => {
    let current = true;
    const use = (language: Language) =>
      show(language).then((words) => {
        if (current) setHave({ language, words });
      });
    use(wanted).catch(() => use('en')); // offline
    return () => {
      current = false;
    };
  }, [wanted]);
  useEffect(() => {
    if (have) document.documentElement.lang = have.language;
  }, [have]);
  const value = useMemo(
    () =>
      have &&
      translation(have.language, have.words, (l) => {
        localStorage.setItem(stored, l);
        setWanted(l);
      }),
    [have],
  );
  return value && <Context value={value}>{children}</Context>;
}
