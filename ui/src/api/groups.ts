// Groups of an organization's users, and the keys of its directory.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { change, groups } from './resource';

export type Group = Schemas['Group'];
export type Grant = Schemas['Grant'];

/** useGroup returns a group as it is now, and until that is read as it was given. */
export const useGroup = (given: Group): Group => {
  const id = groups.id(given);
  return useQuery({ queryKey: groups.key(id), queryFn: () => groups.get(id) }).data ?? given;
};

/** useChangeMembers adds and removes members of a group as it is then. */
export const useChangeMembers = (g: Group, onDone?: () => void) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ add = [], remove = [] }: { add?: string[]; remove?: string[] }) =>
      change(groups, groups.id(g), (now) => ({
        ...now,
        spec: { ...now.spec, members: [...(now.spec.members ?? []).filter((m) => !remove.includes(m)), ...add] },
      })),
    onSuccess: (saved) => {
      client.setQueryData(groups.key(groups.id(saved)), saved);
      void client.invalidateQueries({ queryKey: groups.lists });
      onDone?.();
    },
  });
};

export const deleteGroup = (g: Group) =>
  ok(api.DELETE('/v1/groups/{id}', { params: { path: { id: g.meta.id ?? '' } } }));

/** useMemberNames returns the addresses of an organization's users by their IDs. */
export const useMemberNames = (organization: string) =>
  useQuery({
    queryKey: ['User', 'names', organization],
    queryFn: async () => {
      const page = await ok(api.GET('/v1/users', { params: { query: { organization, limit: 1000 } } }));
      return new Map(page.items.map((u) => [u.meta.id ?? '', u.meta.name]));
    },
  });

/** useConnectDirectory creates a key that a directory uses for SCIM. */
export const useConnectDirectory = (onMade: (k: Schemas['APIKey']) => void) =>
  useMutation({
    mutationFn: (body: Schemas['APIKey']) => ok(api.POST('/v1/api-keys', { body })),
    onSuccess: onMade,
  });
