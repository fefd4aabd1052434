// The current session. It is read once, before everything else, with the store's revision from which the watch
// begins.
import { QueryCache, QueryClient, useQuery, type Query } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from './client';

export interface Session extends Omit<Schemas['Identity'], 'role'> {
  role: Role;
  revision: number;
}

export type Role = Schemas['Grant']['role'];

export const sessionKey = ['session'];

// Whether this browser has signed in. It is not a secret and not trustworthy; without it, the server is not asked
// for a session.
const hint = 'basalt.signed-in';

export const maybeSignedIn = () => localStorage.getItem(hint) !== null;

/** signedIn reads the session that a login has created. */
export async function signedIn(client: QueryClient): Promise<void> {
  localStorage.setItem(hint, '1');
  await client.resetQueries({ queryKey: sessionKey });
}

/**
 * signedOut removes the session, and everything that was read with it. The promise is fulfilled when the pages that
 * showed it are unmounted.
 */
export function signedOut(client: QueryClient): Promise<void> {
  localStorage.removeItem(hint);
  client.setQueryData(sessionKey, null);
  const others = (q: Query) => q.queryKey[0] !== sessionKey[0];
  void client.cancelQueries({ predicate: others });
  return new Promise((done) =>
    // After the pages that showed them are unmounted, as those would fetch them again.
    setTimeout(() => {
      client.removeQueries({ predicate: (q) => others(q) && !q.isActive() });
      done();
    }),
  );
}

async function readSession(): Promise<Session | null> {
  if (!maybeSignedIn()) return null;
  try {
    const [health, who] = await Promise.all([ok(api.GET('/v1/healthz')), ok(api.GET('/v1/whoami'))]);
    return { ...who, role: who.role as Role, revision: health.revision };
  } catch (e) {
    if (!(e instanceof ApiError && e.code === 'unauthenticated')) throw e;
    localStorage.removeItem(hint);
    return null;
  }
}

export const useSessionQuery = () =>
  useQuery({ queryKey: sessionKey, queryFn: readSession, staleTime: Infinity, retry: false });

/** newQueryClient returns a client that signs out when a response says that there is no session. */
export function newQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (e) => {
        if (e instanceof ApiError && e.code === 'unauthenticated') void signedOut(client);
      },
    }),
    defaultOptions: {
      queries: {
        // Watched kinds are updated by the watch; other data becomes stale.
        staleTime: 30_000,
        retry: (n, e) => n < 2 && e instanceof ApiError && (e.code === 'unreachable' || e.code === 'unavailable'),
      },
    },
  });
  return client;
}

const order: Role[] = ['viewer', 'member', 'admin', 'reseller', 'operator'];

/** may reports whether a role has at least the permissions of another; billing is outside this order. */
export const may = (s: Pick<Session, 'role'>, least: Role) => order.indexOf(s.role) >= order.indexOf(least);
export const seesMoney = (s: Pick<Session, 'role'>) => s.role === 'billing' || may(s, 'admin');
export const seesMachines = (s: Pick<Session, 'role'>) => s.role !== 'billing';
