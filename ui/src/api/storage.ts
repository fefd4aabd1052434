// Volumes and snapshots: what pages read of them, and what is done to them.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none, type PageOf } from './queries';

export type Volume = Schemas['Volume'];
export type Snapshot = Schemas['Snapshot'];

/** mostChoices are offered where one of many is chosen. */
export const mostChoices = 1000;

export const useVolumes = (q: PageOf) =>
  useQuery({ queryKey: ['Volume', 'list', none(q)], queryFn: ({ signal }) => ok(api.GET('/v1/volumes', { params: { query: none(q) }, signal })), placeholderData: keepPreviousData });

export const useSnapshots = (q: PageOf) =>
  useQuery({ queryKey: ['Snapshot', 'list', none(q)], queryFn: ({ signal }) => ok(api.GET('/v1/snapshots', { params: { query: none(q) }, signal })), placeholderData: keepPreviousData });

/** changeVolume asks for another spec of a volume as it is now: its status changes all the time. */
export async function changeVolume(id: string, change: (s: Volume['spec']) => Volume['spec']): Promise<Volume> {
  const params = { params: { path: { id } } };
  const now = await ok(api.GET('/v1/volumes/{id}', params));
  return ok(api.PUT('/v1/volumes/{id}', { ...params, body: { kind: now.kind, meta: now.meta, spec: change(now.spec) } }));
}

export const attach = (id: string, instance: string) => changeVolume(id, (s) => ({ ...s, instance }));
export const detach = (id: string) => changeVolume(id, (s) => ({ ...s, instance: undefined }));
export const rollBack = (s: Snapshot) => changeVolume(s.spec.volume, (v) => ({ ...v, rollback: { snapshot: s.meta.id ?? '', count: (v.rollback?.count ?? 0) + 1 } }));

export const createVolume = (body: Volume) => ok(api.POST('/v1/volumes', { body }));
export const createSnapshot = (body: Snapshot) => ok(api.POST('/v1/snapshots', { body }));
export const removeVolume = (v: Volume) => ok(api.DELETE('/v1/volumes/{id}', { params: { path: { id: v.meta.id ?? '' } } }));
export const removeSnapshot = (s: Snapshot) => ok(api.DELETE('/v1/snapshots/{id}', { params: { path: { id: s.meta.id ?? '' } } }));
