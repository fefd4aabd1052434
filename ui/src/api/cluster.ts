// Queries of the operator's cluster pages.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok } from './client';
import { none, type PageOf } from './queries';

/** most is how many objects are read where all of a kind are needed, for names and sums. */
const most = 1000;

export const useImageList = (q: PageOf) =>
  useQuery({
    queryKey: ['Image', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/images', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });
export const useOrganizationNames = (on: boolean) =>
  useQuery({
    queryKey: ['Organization', 'list', 'names'],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/organizations', { params: { query: { limit: most } }, signal })),
  });
export const useJoinTokens = () =>
  useQuery({
    queryKey: ['JoinToken', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/join-tokens', { params: { query: { limit: most } }, signal })),
  });
export const useDisks = (on = true) =>
  useQuery({
    queryKey: ['Disk', 'list'],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/disks', { params: { query: { limit: most } }, signal })),
  });
export const useCeph = () =>
  useQuery({
    queryKey: ['CephCluster', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/ceph-clusters', { signal })),
  });
export const useBackupTargets = () =>
  useQuery({
    queryKey: ['BackupTarget', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/backup-targets', { params: { query: { limit: most } }, signal })),
  });
export const useVolumeNames = () =>
  useQuery({
    queryKey: ['Volume', 'list', 'names'],
    queryFn: ({ signal }) => ok(api.GET('/v1/volumes', { params: { query: { limit: most } }, signal })),
  });
export const useExternalNetworks = () =>
  useQuery({
    queryKey: ['ExternalNetwork', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/external-networks', { params: { query: { limit: most } }, signal })),
  });
/** useAlerts polls, as alerts also depend on the time. */
export const useAlerts = (q: Pick<PageOf, 'limit' | 'continue'>) =>
  useQuery({
    queryKey: ['alerts', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/alerts', { params: { query: none(q) }, signal })),
    refetchInterval: 15_000,
    placeholderData: keepPreviousData,
  });
