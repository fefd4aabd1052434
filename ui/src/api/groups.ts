// Groups of an organization's users, and the keys of its directory.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type Group = Schemas['Group'];
export type Grant = Schemas['Grant'];

/** useSaveGroup creates a group, or changes an existing one. */
export const useSaveGroup = (onDone: () => void) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Group) =>
      body.meta.id
        ? ok(api.PUT('/v1/groups/{id}', { params: { path: { id: body.meta.id } }, body }))
        : ok(api.POST('/v1/groups', { body })),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['Group', 'list'] });
      onDone();
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
      const page = await ok(api.GET('/v1/users', { params: { query: { organization, limit: 500 } } }));
      return new Map(page.items.map((u) => [u.meta.id ?? '', u.meta.name]));
    },
  });

/** useConnectDirectory creates a key that a directory uses for SCIM. */
export const useConnectDirectory = (onMade: (k: Schemas['APIKey']) => void) =>
  useMutation({
    mutationFn: (body: Schemas['APIKey']) => ok(api.POST('/v1/api-keys', { body })),
    onSuccess: onMade,
  });
