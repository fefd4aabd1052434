// The place of an instance in the queue, which is calculated for each response and is not part of the stored object.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Instance } from './client';

/** waits reports whether an instance waits in the queue: for a node, or while it is stopped for another size. */
export const waits = ({ meta, assignment: a = {}, status }: Instance) =>
  !meta.deletedAt && Boolean(a.queuedAt) && !a.placedAt && (!a.node || status?.phase === 'Stopped');

/** useQueuePlace returns the place of an instance that waits. */
export const useQueuePlace = (i: Instance) =>
  useQuery({
    queryKey: ['queue', i.meta.id],
    enabled: waits(i),
    refetchInterval: 10_000,
    retry: false,
    queryFn: async ({ signal }) =>
      (await ok(api.GET('/v1/instances/{id}', { params: { path: { id: i.meta.id ?? '' } }, signal }))).queue ?? null,
  });
