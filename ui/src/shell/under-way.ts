// Operations that are already in progress when the tasks are shown; the watch reports later changes.
import { useQuery } from '@tanstack/react-query';
import { taskStore } from '../lib/tasks';
import { api, ok } from '../api/client';
import { may, type Session } from '../api/session';
import type { WatchedObject } from '../api/watch';

const limit = 100; // of each kind; older operations appear when they change

/** useUnderWay reads the operations in progress, at most once a minute. */
export const useUnderWay = (session: Session) =>
  useQuery({
    queryKey: ['tasks'],
    staleTime: 60_000,
    queryFn: async ({ signal }) => {
      const q = { params: { query: { limit } }, signal };
      const lists = await Promise.all([
        ok(api.GET('/v1/instances', q)),
        ok(api.GET('/v1/volumes', q)),
        ok(api.GET('/v1/snapshots', q)),
        ok(api.GET('/v1/backups', q)),
        ok(api.GET('/v1/images', q)),
        ...(may(session, 'operator') ? [ok(api.GET('/v1/migrations', q))] : []),
      ]);
      taskStore.look(lists.flatMap((l) => l.items as unknown as WatchedObject[]));
      return null;
    },
  });
