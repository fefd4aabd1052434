// An instance's history, the audit trail, the own account, projects.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Instance, type Schemas } from './client';
import { none } from './queries';

export type InstanceEvent = Schemas['InstanceEvent'];
export type AuditEvent = Schemas['AuditEvent'];
export type OwnSession = Schemas['Session'];
export type Project = Schemas['Project'];

/** useHistory of an instance; asked again with each change of it that the watch tells of. */
export const useHistory = ({ meta }: Instance) =>
  useQuery({
    queryKey: ['history', meta.id, meta.revision],
    enabled: !meta.deletedAt, // it may be gone before the answer
    queryFn: ({ signal }) => ok(api.GET('/v1/instances/{id}/events', { params: { path: { id: meta.id ?? '' } }, signal })),
    placeholderData: keepPreviousData,
    staleTime: Infinity,
  });

export const useAudit = (q: { organization?: string; oldest?: boolean; limit?: number; continue?: string }) =>
  useQuery({ queryKey: ['audit', none(q)], queryFn: ({ signal }) => ok(api.GET('/v1/audit-events', { params: { query: none(q) }, signal })), placeholderData: keepPreviousData, staleTime: 0 });

export const useOrganizations = (on: boolean) => useQuery({ queryKey: ['Organization', 'list'], enabled: on, queryFn: ({ signal }) => ok(api.GET('/v1/organizations', { params: { query: { limit: 1000 } }, signal })) });

export const useSessions = () => useQuery({ queryKey: ['Session', 'list'], queryFn: ({ signal }) => ok(api.GET('/v1/sessions', { signal })), retry: false });
export const endSession = (s: OwnSession) => ok(api.DELETE('/v1/sessions/{id}', { params: { path: { id: s.meta.id ?? '' } } }));

export const removeProject = (p: Project) => ok(api.DELETE('/v1/projects/{id}', { params: { path: { id: p.meta.id ?? '' } } }));
