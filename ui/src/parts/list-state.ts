// The state of a list: page, page size, order and filters. All but the page size is in the address, so that it can
// be linked and restored by going back.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useCallback, useEffect, useMemo, useState } from 'react';
import type { Collection, ObjectPage, PageQuery } from '../api/collection';
import { none } from '../api/queries';
import { setParams, useParam, useParams } from '../lib/address';
import { asked, namesOf, narrowed, unprefixed, type Facet, type Narrowing } from '../lib/narrow';
import { projectParam, useProject } from './project';

export interface Pages {
  token: string;
  page: number;
  next: (token: string) => void;
  previous: () => void;
  reset: () => void;
  /** Page size, where it can be chosen. */
  size?: number;
  resize?: (n: number) => void;
}

/** usePages pages through a list by its tokens, and returns to the first page when of changes. */
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

/** useLinkedPages is usePages with the page in the address: its number, and its token with a mark of what it belongs
 * to, since it is valid only for the same filters, order and page size. From a page that was opened by a link, previous
 * leads to the first page, as the tokens of those in between are not known. */
function useLinkedPages(of: string, prefix: string): Pages {
  const [names] = useState(() => pageNames(prefix));
  const [address, write] = useParams(names);
  const [known, remember] = useState<Readonly<Record<string, string>>>({});
  const mark = markOf(of);
  const after = address[`${prefix}after`] ?? '';
  const token = after.startsWith(`${mark}.`) ? after.slice(mark.length + 1) : '';
  const page = token ? Math.max(2, Math.floor(Number(address[`${prefix}page`])) || 2) : 1;
  const to = (n: number, next: string) =>
    write({ [`${prefix}page`]: next && String(n), [`${prefix}after`]: next && `${mark}.${next}` });
  return {
    token,
    page,
    next: (next) => {
      remember((all) => ({ ...all, [`${mark} ${page}`]: token, [`${mark} ${page + 1}`]: next }));
      to(page + 1, next);
    },
    previous: () => to(page - 1, known[`${mark} ${page - 1}`] ?? ''),
    reset: () => to(1, ''),
  };
}

/** useSearch returns a function that sets the search text, which is stable across renders. */
const useSearch = (prefix: string) =>
  useCallback(
    (text: string) => setParams({ [`${prefix}search`]: text, [`${prefix}page`]: '', [`${prefix}after`]: '' }, true),
    [prefix],
  );

const firstPage = { page: '', after: '' };
const pageNames = (prefix: string) => [`${prefix}page`, `${prefix}after`];

/** markOf returns a short hash of a text (FNV-1a), which only needs to differ for the queries of one list. */
function markOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}

export const sizes = [25, 100, 500];
const stored = 'basalt.page-size';

function usePageSize(): [number, (n: number) => void] {
  const [size, set] = useState(() => Number(localStorage.getItem(stored)));
  return [sizes.includes(size) ? size : 25, (n) => (localStorage.setItem(stored, String(n)), set(n))];
}

/** Listing is a list that the server searches, sorts, filters and pages. */
export interface Listing<T> {
  query: { data?: ObjectPage<T>; error: unknown; isPending: boolean; refetch: () => unknown };
  pages: Pages;
  facets: readonly Facet[];
  /** By the names in lib/narrow.ts. */
  values: Narrowing;
  /** search sets the search text; it is stable across renders. */
  search: (text: string) => void;
  /** change sets some values: it replaces the address, or adds a history entry. */
  change: (values: Narrowing, replace?: boolean) => void;
  sort: string;
  narrowed: boolean;
  /** Its rows are objects with labels, which can be filtered by them. */
  labelled: boolean;
  /** On all pages, once known. */
  total?: number;
  /** all returns all matching rows, up to a maximum. */
  all: () => Promise<T[]>;
}

interface Options {
  /** Parameters of every request; the conditions of a field selector are added to those of the filters. */
  fixed?: PageQuery;
  facets?: readonly Facet[];
  /** The default order. */
  sort?: string;
  /** For the second and further lists of a page. */
  prefix?: string;
  enabled?: boolean;
}

const mostExported = 50_000; // rows; spreadsheets hardly support more, and each thousand is a request
const noFacets: readonly Facet[] = [];

export function useListing<T>(of: Collection<T>, options: Options = {}): Listing<T> {
  const { fixed, facets = noFacets, sort = 'name', prefix = '', enabled = true } = options;
  const [raw, write] = useParams(namesOf(facets, prefix));
  const values = unprefixed(raw, prefix);
  const [size, resize] = usePageSize();
  const narrowing = asked(values, facets, sort);
  const fieldSelector = [fixed?.fieldSelector, narrowing.fieldSelector].filter(Boolean).join(',');
  const q: PageQuery = { ...fixed, ...narrowing, fieldSelector };
  const pages = useLinkedPages(`${JSON.stringify(none(q))} ${size}`, prefix);
  const here = none({ ...q, limit: size, continue: pages.token });
  const query = useQuery({
    queryKey: [of.kind, 'list', here],
    enabled,
    queryFn: ({ signal }) => of.read(here, signal),
    placeholderData: keepPreviousData,
  });
  const shown = query.data?.items.length ?? 0;
  const more = Boolean(query.data?.continue) || pages.page > 1;
  // Counting costs the server as much as reading all pages, so only if there is more than one page.
  const total = useQuery({
    queryKey: ['total', of.kind, none(q)],
    enabled: enabled && more && query.data?.total === undefined,
    queryFn: async ({ signal }) => (await of.read({ ...q, limit: 1, count: true }, signal)).total ?? 0,
    placeholderData: keepPreviousData,
    refetchInterval: 20_000,
  });
  const change = (changed: Narrowing, replace = false) =>
    write(Object.fromEntries(Object.entries({ ...changed, ...firstPage }).map(([n, v]) => [prefix + n, v])), replace);
  const search = useSearch(prefix);
  return {
    query,
    pages: { ...pages, size, resize },
    facets,
    values,
    change,
    search,
    sort: values.sort || sort,
    narrowed: narrowed(values),
    labelled: !of.computed,
    total: query.data?.total ?? (query.data && !more ? shown : more ? total.data : undefined),
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

/** useProjectListing is a listing of the current project, which is in the address too. */
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
