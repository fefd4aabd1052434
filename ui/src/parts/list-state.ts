// What one looks at of a list: which page, how many on it, and what is searched.
import { useState } from 'react';
import { useParam } from '../lib/address';

export interface Pages {
  token: string;
  page: number;
  next: (token: string) => void;
  previous: () => void;
  reset: () => void;
  /** How many on a page, where that can be chosen. */
  size?: number;
  resize?: (n: number) => void;
}

/** usePages walks a list's pages by their tokens, from the first again when what is listed changes. */
export function usePages(of = ''): Pages {
  const [walked, set] = useState<{ of: string; tokens: string[] }>({ of, tokens: [] });
  if (walked.of !== of) set({ of, tokens: [] });
  const tokens = walked.of === of ? walked.tokens : [];
  return {
    token: tokens.at(-1) ?? '',
    page: tokens.length + 1,
    next: (token) => set({ of, tokens: [...tokens, token] }),
    previous: () => set({ of, tokens: tokens.slice(0, -1) }),
    reset: () => set({ of, tokens: [] }),
  };
}

export interface Filter {
  search: string;
  set: (search: string) => void;
}

/** useFilter is what is searched; it stands in the address, so that it can be linked. */
export function useFilter(): Filter {
  const [search, set] = useParam('search');
  return { search, set };
}

export const sizes = [25, 100, 500];
const stored = 'basalt.page-size';

function usePageSize(): [number, (n: number) => void] {
  const [size, set] = useState(() => Number(localStorage.getItem(stored)));
  return [sizes.includes(size) ? size : 25, (n) => (localStorage.setItem(stored, String(n)), set(n))];
}

/** useListing is a list that is searched, paged and sized on the server; of says what else narrows it. */
export function useListing(of = '') {
  const filter = useFilter();
  const [size, resize] = usePageSize();
  const pages = usePages(`${of} ${size} ${filter.search}`);
  return {
    query: { search: filter.search, limit: size, continue: pages.token },
    pages: { ...pages, size, resize },
    filter,
  };
}
