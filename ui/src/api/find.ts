// Search for objects of all kinds on the server, for kinds that have a page which the session may open.
import { useQueries } from '@tanstack/react-query';
import { api, ok } from './client';
import { may, seesMachines, type Session } from './session';

export interface Found {
  kind: FoundKind;
  id: string;
  name: string;
  href: string;
}

interface Objects {
  items: { meta: { id?: string; name: string } }[];
}

type Ask = (search: string, signal: AbortSignal) => Promise<Objects>;

const limit = 5;
const asked = (search: string, signal: AbortSignal) => ({ params: { query: { search, limit } }, signal });
const operator = (s: Session) => may(s, 'operator');

/** The kinds to search, with the possible addresses of their pages. */
const sources = {
  Instance: { at: ['/instances'], when: seesMachines, ask: (q, s) => ok(api.GET('/v1/instances', asked(q, s))) },
  Volume: { at: ['/volumes', '/storage'], when: seesMachines, ask: (q, s) => ok(api.GET('/v1/volumes', asked(q, s))) },
  Network: { at: ['/networks'], when: seesMachines, ask: (q, s) => ok(api.GET('/v1/networks', asked(q, s))) },
  Image: { at: ['/images'], when: seesMachines, ask: (q, s) => ok(api.GET('/v1/images', asked(q, s))) },
  Organization: {
    at: ['/organizations', '/tenants'],
    when: operator,
    ask: (q, s) => ok(api.GET('/v1/organizations', asked(q, s))),
  },
  Node: { at: ['/nodes'], when: operator, ask: (q, s) => ok(api.GET('/v1/nodes', asked(q, s))) },
  User: { at: ['/users', '/members'], when: operator, ask: (q, s) => ok(api.GET('/v1/users', asked(q, s))) },
} satisfies Record<string, { at: string[]; when: (s: Session) => boolean; ask: Ask }>;

export type FoundKind = keyof typeof sources;

/** hrefOf returns the address of an object's own page, or of its kind's list filtered to it; undefined if there is
 * none. */
export function hrefOf(at: readonly string[], id: string, paths: readonly string[]): string | undefined {
  for (const base of at) if (paths.some((p) => p.startsWith(`${base}/:id`))) return `${base}/${id}`;
  const list = at.find((base) => paths.includes(base));
  return list && `${list}?search=${encodeURIComponent(id)}`;
}

/** useFind returns the matches of each kind, in the order of the kinds, for those that one of paths shows. */
export function useFind(search: string, session: Session, paths: readonly string[]): { found: Found[]; busy: boolean } {
  const kinds = (Object.keys(sources) as FoundKind[]).filter(
    (k) => sources[k].when(session) && hrefOf(sources[k].at, 'x', paths),
  );
  return useQueries({
    queries: kinds.map((kind) => ({
      queryKey: ['find', kind, search],
      enabled: search !== '',
      staleTime: 10_000,
      queryFn: ({ signal }: { signal: AbortSignal }) => (sources[kind].ask as Ask)(search, signal),
    })),
    combine: (all) => ({
      busy: all.some((q) => q.isFetching),
      found: all.flatMap((q, i) => {
        const kind = kinds[i];
        if (!kind || !q.data) return [];
        return q.data.items.map(({ meta: { id = '', name } }) => ({
          kind,
          id,
          name,
          href: hrefOf(sources[kind].at, id, paths) ?? '',
        }));
      }),
    }),
  });
}
