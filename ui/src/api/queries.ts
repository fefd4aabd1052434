// The queries of the pages, one hook each. Keys are [kind, 'list' | 'one', …], by which live.ts finds them for
// changes.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from './client';

export interface PageOf {
  project?: string;
  /** A part of the name or the ID, or the beginning of an address. */
  search?: string;
  limit?: number;
  continue?: string;
}

export const none = <T extends object>(q: T): T =>
  Object.fromEntries(Object.entries(q).filter(([, v]) => v !== undefined && v !== '')) as T;

export const useInstances = (q: PageOf) =>
  useQuery({
    queryKey: ['Instance', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/instances', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useInstance = (id: string) =>
  useQuery({
    queryKey: ['Instance', 'one', id],
    // null means that it was deleted.
    queryFn: async ({ signal }) => {
      try {
        return await ok(api.GET('/v1/instances/{id}', { params: { path: { id } }, signal }));
      } catch (e) {
        if (e instanceof ApiError && e.code === 'not_found') return null;
        throw e;
      }
    },
  });

export const useConsoleLog = (id: string, on: boolean) =>
  useQuery({
    queryKey: ['console-log', id],
    enabled: on,
    queryFn: ({ signal }) =>
      ok(
        api.GET('/v1/instances/{id}/console-log', {
          params: { path: { id }, query: { tail: 16384 } },
          parseAs: 'text',
          signal,
        }),
      ),
    refetchInterval: 5000,
  });

export const useFlavors = () =>
  useQuery({ queryKey: ['Flavor', 'list'], queryFn: ({ signal }) => ok(api.GET('/v1/flavors', { signal })) });
/** mostInstances is how many instances are read where all are needed. */
export const mostInstances = 1000;

export const useNodes = (q: PageOf, on = true) =>
  useQuery({
    queryKey: ['Node', 'list', none(q)],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/nodes', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });
export const useGpus = () =>
  useQuery({
    queryKey: ['GPU', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/gpus', { params: { query: { limit: 1000 } }, signal })),
  });
export const useApps = () =>
  useQuery({
    queryKey: ['App', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/apps', { params: { query: { limit: 1000 } }, signal })),
  });
export const usePools = () =>
  useQuery({ queryKey: ['GPUPool', 'list'], queryFn: ({ signal }) => ok(api.GET('/v1/gpu-pools', { signal })) });
export const useImages = (project: string) =>
  useQuery({
    queryKey: ['Image', 'list', project],
    queryFn: ({ signal }) => ok(api.GET('/v1/images', { signal })),
    select: (p) => ({ ...p, items: p.items.filter((i) => i.spec.public || !project || i.meta.project === project) }),
  });
export const useNetworks = (project: string) =>
  useQuery({
    queryKey: ['Network', 'list', project],
    enabled: project !== '',
    queryFn: ({ signal }) => ok(api.GET('/v1/networks', { params: { query: { project } }, signal })),
  });
export const useProjects = (on: boolean) =>
  useQuery({
    queryKey: ['Project', 'list'],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/projects', { signal })),
  });

export const useQuota = (project: string, organization: string | undefined) =>
  useQuery({
    queryKey: ['quota', project, organization],
    enabled: Boolean(project || organization),
    queryFn: ({ signal }) =>
      project
        ? ok(api.GET('/v1/projects/{id}/quota', { params: { path: { id: project } }, signal }))
        : ok(api.GET('/v1/organizations/{id}/quota', { params: { path: { id: organization! } }, signal })),
  });

export interface Period {
  from: string;
  to: string;
}

export const useUsage = (organization: string | undefined, project: string, period: Period) =>
  useQuery({
    queryKey: ['usage', organization, project, period],
    enabled: Boolean(organization),
    queryFn: async ({ signal }) => {
      const items: Schemas['UsageSum'][] = [];
      let next: string | undefined;
      do {
        const query = none({ organization, project, ...period, by: 'total' as const, limit: 1000, continue: next });
        const page: Schemas['UsagePage'] = await ok(api.GET('/v1/usage', { params: { query }, signal }));
        items.push(...page.items);
        next = page.continue;
      } while (next && items.length < 5000);
      return { items, more: Boolean(next) };
    },
  });

export const useWallet = (organization: string | undefined, on: boolean) =>
  useQuery({
    queryKey: ['wallet', organization],
    enabled: on && Boolean(organization),
    queryFn: ({ signal }) => ok(api.GET('/v1/wallet', { params: { query: { organization } }, signal })),
  });

export const useUsers = (q: PageOf) =>
  useQuery({
    queryKey: ['User', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/users', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });
