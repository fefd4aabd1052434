// The place of an instance in the queue, which is calculated for each response and is not part of the stored object.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Instance } from './client';

/** waits reports whether an instance waits for a node with room. */
export const waits = ({ meta, assignment: a = {} }: Instance) => !meta.deletedAt && !a.node && Boolean(a.queuedAt);

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
