// What one looks at of a list: which page, how many on it, in which order, and
// what narrows it. All but the page stands in the address, so that it can be
// linked and gone back to.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import type { Collection, ObjectPage, PageQuery } from '../api/collection';
import { none } from '../api/queries';
import { useParam, useParams } from '../lib/address';
import { asked, namesOf, narrowed, unprefixed, type Facet, type Narrowing } from '../lib/narrow';
import { projectParam, useProject } from './project';

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

export const sizes = [25, 100, 500];
const stored = 'basalt.page-size';

function usePageSize(): [number, (n: number) => void] {
  const [size, set] = useState(() => Number(localStorage.getItem(stored)));
  return [sizes.includes(size) ? size : 25, (n) => (localStorage.setItem(stored, String(n)), set(n))];
}

/** Listing is a list that the server searches, orders, narrows and pages. */
export interface Listing<T> {
  query: { data?: ObjectPage<T>; error: unknown; isPending: boolean; refetch: () => unknown };
  pages: Pages;
  facets: readonly Facet[];
  /** By the names of lib/narrow.ts. */
  values: Narrowing;
  /** search, which stays the same from one drawing to the next. */
  search: (text: string) => void;
  /** change some values; in place of the address as it is, or as a step to go back to. */
  change: (values: Narrowing, replace?: boolean) => void;
  sort: string;
  narrowed: boolean;
  /** On all pages, once that is known. */
  total?: number;
  /** all rows that match, as far as most. */
  all: () => Promise<T[]>;
}

interface Options {
  /** What is always asked for. */
  fixed?: PageQuery;
  facets?: readonly Facet[];
  /** The order that nobody has chosen. */
  sort?: string;
  /** Of the second and further lists of a page. */
  prefix?: string;
  enabled?: boolean;
}

const mostExported = 50_000; // rows: a spreadsheet takes hardly more, and each thousand is a request
const noFacets: readonly Facet[] = [];

export function useListing<T>(of: Collection<T>, options: Options = {}): Listing<T> {
  const { fixed, facets = noFacets, sort = 'name', prefix = '', enabled = true } = options;
  const [raw, write] = useParams(namesOf(facets, prefix));
  const [, search] = useParam(`${prefix}search`);
  const values = unprefixed(raw, prefix);
  const [size, resize] = usePageSize();
  const q: PageQuery = { ...fixed, ...asked(values, facets, sort) };
  const pages = usePages(`${JSON.stringify(none(q))} ${size}`);
  const here = none({ ...q, limit: size, continue: pages.token });
  const query = useQuery({
    queryKey: [of.kind, 'list', here],
    enabled,
    queryFn: ({ signal }) => of.read(here, signal),
    placeholderData: keepPreviousData,
  });
  const shown = query.data?.items.length ?? 0;
  const more = Boolean(query.data?.continue) || pages.page > 1;
  // To count costs the server as much as all pages: only where one page is not all.
  const total = useQuery({
    queryKey: ['total', of.kind, none(q)],
    enabled: enabled && more,
    queryFn: async ({ signal }) => (await of.read({ ...q, limit: 1, count: true }, signal)).total ?? 0,
    placeholderData: keepPreviousData,
    refetchInterval: 20_000,
  });
  const change = (changed: Narrowing, replace = false) =>
    write(Object.fromEntries(Object.entries(changed).map(([n, v]) => [prefix + n, v])), replace);
  return {
    query,
    pages: { ...pages, size, resize },
    facets,
    values,
    change,
    search,
    sort: values.sort || sort,
    narrowed: narrowed(values),
    total: query.data && !more ? shown : more ? total.data : undefined,
    all: () => readAll(of, q),
  };
}

async function readAll<T>(of: Collection<T>, q: PageQuery): Promise<T[]> {
  const all: T[] = [];
  let next: string | undefined = '';
  do {
    const page: ObjectPage<T> = await of.read({ ...q, limit: 1000, continue: next });
    all.push(...page.items);
    next = page.continue;
  } while (next && all.length < mostExported);
  return all;
}

/** useProjectListing is a listing of the project that one works in, which stands in the address too. */
export function useProjectListing<T>(of: Collection<T>, options: Options = {}): Listing<T> {
  const { project, projects } = useProject();
  const several = projects.length > 1;
  const [linked, link] = useParam(projectParam);
  useEffect(() => {
    if (several && project && !linked) link(project);
  }, [several, project, linked, link]);
  const fixed = useMemo(() => ({ ...options.fixed, project }), [options.fixed, project]);
  return useListing(of, { ...options, fixed });
}
