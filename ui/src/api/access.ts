// Who has access, and the settings of the cluster about that.
import { useQueries, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import type { Collection } from './collection';
import { none } from './queries';
import type { Role } from './session';

export type AccessEntry = Schemas['AccessEntry'];
export type Finding = NonNullable<AccessEntry['findings']>[number];
export type SecuritySettings = Schemas['SecuritySettings'];

/** AccessQuery is what the review can be narrowed by. */
interface AccessQuery {
  organization?: string;
  search?: string;
  limit?: number;
  continue?: string;
  kind?: AccessEntry['kind'];
  role?: Role;
  finding?: Finding | 'any';
  unusedDays?: number;
}

const review = (q: AccessQuery, signal?: AbortSignal) => {
  const { organization, search, limit, continue: token, kind, role, finding, unusedDays } = q;
  const query = none({ organization, search, limit, continue: token, kind, role, finding, unusedDays });
  return ok(api.GET('/v1/access-review', { params: { query }, signal }));
};

/** accessReview is the review as a list; the server orders it. */
export const accessReview: Collection<AccessEntry> = {
  kind: 'AccessReview',
  computed: true,
  read: review,
};

/** useWithoutFactor returns, of each role that has any, some users who sign in with a password alone, and how many
 * there are. */
export const useWithoutFactor = (roles: readonly Role[]) =>
  useQueries({
    queries: roles.map((role) => ({
      queryKey: ['AccessReview', 'without-factor', role],
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const { items, total } = await review({ kind: 'User', finding: 'no-second-factor', role, limit: 3 }, signal);
        return { role, total, names: items.map((u) => u.name) };
      },
    })),
    combine: (all) => all.flatMap((q) => (q.data && q.data.total > 0 ? [q.data] : [])),
  });

export const useSecuritySettings = () =>
  useQuery({
    queryKey: ['security-settings'],
    queryFn: ({ signal }) => ok(api.GET('/v1/security-settings', { signal })),
  });
