// Queries and changes of volumes and snapshots.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none, type PageOf } from './queries';
import { change, volumes } from './resource';

export type Volume = Schemas['Volume'];
export type Snapshot = Schemas['Snapshot'];

/** mostChoices is how many choices a field offers at most. */
export const mostChoices = 1000;

export const useVolumes = (q: PageOf) =>
  useQuery({
    queryKey: ['Volume', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/volumes', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useVolume = (id: string) =>
  useQuery({ queryKey: volumes.key(id), enabled: id !== '', queryFn: () => volumes.get(id), retry: false });

export const useSnapshots = (q: PageOf) =>
  useQuery({
    queryKey: ['Snapshot', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/snapshots', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useBackups = (q: PageOf) =>
  useQuery({
    queryKey: ['Backup', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/backups', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

const put = (id: string, spec: (now: Volume['spec']) => Volume['spec']) =>
  change(volumes, id, (now) => ({ kind: now.kind, meta: now.meta, spec: spec(now.spec) }));

export const attach = (id: string, instance: string) => put(id, (s) => ({ ...s, instance }));
export const detach = (id: string) => put(id, (s) => ({ ...s, instance: undefined }));

export const rollBack = (s: Snapshot) =>
  put(s.spec.volume, (v) => ({ ...v, rollback: { snapshot: s.meta.id ?? '', count: (v.rollback?.count ?? 0) + 1 } }));

export const createVolume = (body: Volume) => ok(api.POST('/v1/volumes', { body }));
export const createSnapshot = (body: Snapshot) => ok(api.POST('/v1/snapshots', { body }));
export const removeVolume = (v: Volume) =>
  ok(api.DELETE('/v1/volumes/{id}', { params: { path: { id: v.meta.id ?? '' } } }));
export const removeSnapshot = (s: Snapshot) =>
  ok(api.DELETE('/v1/snapshots/{id}', { params: { path: { id: s.meta.id ?? '' } } }));
