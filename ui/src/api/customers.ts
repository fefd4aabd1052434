// Queries and changes of the pages about customers.
import { keepPreviousData, useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from './client';
import type { PageOf } from './queries';
import { change, organizations } from './resource';
import { may, type Session } from './session';

export type Organization = Schemas['Organization'];

/** ownsOrganization reports whether a session may change a customer: a reseller may not change its own organization. */
export const ownsOrganization = (session: Session, o: Organization) =>
  may(session, 'operator') || o.meta.id !== session.organization;

const given = <T extends object>(q: T): T =>
  Object.fromEntries(Object.entries(q).filter(([, v]) => v !== undefined && v !== '')) as T;

export interface Of extends PageOf {
  organization?: string;
}

export const useOrganizations = (q: PageOf, on = true) =>
  useQuery({
    queryKey: ['Organization', 'list', given(q)],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/organizations', { params: { query: given(q) }, signal })),
    placeholderData: keepPreviousData,
  });

/** useOrganization returns an organization, or null if it was deleted. */
export const useOrganization = (id: string) =>
  useQuery({
    queryKey: ['Organization', 'one', id],
    queryFn: async ({ signal }) => {
      try {
        return await ok(api.GET('/v1/organizations/{id}', { params: { path: { id } }, signal }));
      } catch (e) {
        if (e instanceof ApiError && e.code === 'not_found') return null;
        throw e;
      }
    },
  });

/** changeOrganization changes a customer as currently stored. */
export const changeOrganization = (o: Organization, spec: (now: Organization['spec']) => Organization['spec']) =>
  change(organizations, o.meta.id ?? '', (now) => ({ kind: now.kind, meta: now.meta, spec: spec(now.spec) }));

export const suspendOrganization = (reason: string) => (now: Organization['spec']) => ({
  ...now,
  suspended: { reason },
});
export const resumeOrganization = (now: Organization['spec']) => ({ ...now, suspended: undefined });

/** deleteOrganization deletes a customer without projects and members. */
export const deleteOrganization = (o: Organization) =>
  ok(api.DELETE('/v1/organizations/{id}', { params: { path: { id: o.meta.id ?? '' } } }));

/** deleteUser deletes a user; the user's sessions end. */
export const deleteUser = (u: Schemas['User']) =>
  ok(api.DELETE('/v1/users/{id}', { params: { path: { id: u.meta.id ?? '' } } }));

/** useChangeOrganization performs one action on a customer as currently stored. */
export function useChangeOrganization(o: Organization, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (spec: (now: Organization['spec']) => Organization['spec']) => changeOrganization(o, spec),
    onSuccess: (saved) => {
      client.setQueryData(['Organization', 'one', saved.meta.id], saved);
      void client.invalidateQueries({ queryKey: ['Organization', 'list'] });
      onDone();
    },
  });
}

export const usePriceBooks = (on = true) =>
  useQuery({
    queryKey: ['PriceBook', 'list', {}],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/price-books', { params: { query: { limit: 1000 } }, signal })),
  });

export const useProjectsOf = (q: Of) =>
  useQuery({
    queryKey: ['Project', 'list', given(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/projects', { params: { query: given(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useLedger = (organization: string) =>
  useQuery({
    queryKey: ['ledger', organization],
    queryFn: ({ signal }) => ok(api.GET('/v1/ledger', { params: { query: { organization } }, signal })),
  });
