// An instance's history, the audit log, the user's own account, projects.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Instance, type Schemas } from './client';
import type { paths } from './schema';
import { none } from './queries';

export type InstanceEvent = Schemas['InstanceEvent'];
export type AuditEvent = Schemas['AuditEvent'];
export type AuditQuery = NonNullable<paths['/v1/audit-events']['get']['parameters']['query']>;
export type OwnSession = Schemas['Session'];
export type Project = Schemas['Project'];

/** useHistory returns an instance's history; it is fetched again with each change of the instance. */
export const useHistory = ({ meta }: Instance) =>
  useQuery({
    queryKey: ['history', meta.id, meta.revision],
    enabled: !meta.deletedAt, // it may be removed before the response
    queryFn: ({ signal }) =>
      ok(api.GET('/v1/instances/{id}/events', { params: { path: { id: meta.id ?? '' } }, signal })),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });

// With a filter, the API scans only a part of the log per call.
const mostCalls = 20;

/** useAudit returns a page of the log. An empty page with a following one means that nothing was found so far. */
export const useAudit = (q: AuditQuery) =>
  useQuery({
    queryKey: ['audit', none(q)],
    queryFn: async ({ signal }) => {
      const ask = (query: AuditQuery) => ok(api.GET('/v1/audit-events', { params: { query: none(query) }, signal }));
      let page = await ask(q);
      for (let n = 1; n < mostCalls && page.items.length === 0 && page.continue; n++)
        page = await ask({ ...q, continue: page.continue });
      return page;
    },
    placeholderData: keepPreviousData,
    staleTime: 0,
  });

export const useOrganizations = (on: boolean) =>
  useQuery({
    queryKey: ['Organization', 'list'],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/organizations', { params: { query: { limit: 1000 } }, signal })),
  });

export const useSessions = () =>
  useQuery({
    queryKey: ['Session', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/sessions', { signal })),
    retry: false,
  });
export const endSession = (s: OwnSession) =>
  ok(api.DELETE('/v1/sessions/{id}', { params: { path: { id: s.meta.id ?? '' } } }));

export const removeProject = (p: Project) =>
  ok(api.DELETE('/v1/projects/{id}', { params: { path: { id: p.meta.id ?? '' } } }));
