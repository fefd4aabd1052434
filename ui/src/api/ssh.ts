// A user's own SSH keys, and how to reach an instance by SSH.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type SSHKey = Schemas['SSHKey'];
export type Connection = Schemas['InstanceConnection'];

export const useSSHKeys = () =>
  useQuery({
    queryKey: ['SSHKey', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/ssh-keys', { params: { query: { limit: 1000 } }, signal })),
    retry: false,
  });

export const addSSHKey = (name: string, publicKey: string) =>
  ok(api.POST('/v1/ssh-keys', { body: { kind: 'SSHKey', meta: { name }, spec: { publicKey } } }));

export const removeSSHKey = (k: SSHKey) =>
  ok(api.DELETE('/v1/ssh-keys/{id}', { params: { path: { id: k.meta.id ?? '' } } }));

export const useConnection = (instance: string) =>
  useQuery({
    queryKey: ['connection', instance],
    queryFn: ({ signal }) =>
      ok(api.GET('/v1/instances/{id}/connection', { params: { path: { id: instance } }, signal })),
    retry: false,
    enabled: instance !== '',
  });

/** openApp returns the address at which this browser opens an instance's app on a port. */
export const openApp = (instance: string, port: number) =>
  ok(api.POST('/v1/instances/{id}/app-links', { params: { path: { id: instance } }, body: { port } }));

/** expired reports whether a key has expired; such keys are not added to new instances. */
export const expired = (k: SSHKey) => k.spec.expiresAt !== undefined && Date.parse(k.spec.expiresAt) <= Date.now();
