// Queries and changes of networks, security groups, addresses and load balancers.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none, type PageOf } from './queries';
import { change, floatingIPs } from './resource';

export type Network = Schemas['Network'];
export type SecurityGroup = Schemas['SecurityGroup'];
export type SecurityRule = Schemas['SecurityRule'];
export type FloatingIP = Schemas['FloatingIP'];
export type LoadBalancer = Schemas['LoadBalancer'];

export const useNetworkPage = (q: PageOf) =>
  useQuery({
    queryKey: ['Network', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/networks', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useSecurityGroups = (q: PageOf) =>
  useQuery({
    queryKey: ['SecurityGroup', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/security-groups', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useSecurityGroup = (id: string) =>
  useQuery({
    queryKey: ['SecurityGroup', 'one', id],
    queryFn: ({ signal }) => ok(api.GET('/v1/security-groups/{id}', { params: { path: { id } }, signal })),
  });

export const useFloatingIPs = (q: PageOf) =>
  useQuery({
    queryKey: ['FloatingIP', 'list', none(q)],
    queryFn: ({ signal }) => ok(api.GET('/v1/floating-ips', { params: { query: none(q) }, signal })),
    placeholderData: keepPreviousData,
  });

export const useExternalNetworks = () =>
  useQuery({
    queryKey: ['ExternalNetwork', 'list'],
    queryFn: ({ signal }) => ok(api.GET('/v1/external-networks', { signal })),
  });

export const createNetwork = (body: Network) => ok(api.POST('/v1/networks', { body }));
export const removeNetwork = (n: Network) =>
  ok(api.DELETE('/v1/networks/{id}', { params: { path: { id: n.meta.id ?? '' } } }));

export const createGroup = (body: SecurityGroup) => ok(api.POST('/v1/security-groups', { body }));
export const removeGroup = (g: SecurityGroup) =>
  ok(api.DELETE('/v1/security-groups/{id}', { params: { path: { id: g.meta.id ?? '' } } }));

export const createFloatingIP = (body: FloatingIP) => ok(api.POST('/v1/floating-ips', { body }));
export const removeFloatingIP = (f: FloatingIP) =>
  ok(api.DELETE('/v1/floating-ips/{id}', { params: { path: { id: f.meta.id ?? '' } } }));

/** pointed returns a floating IP that leads to an instance's port in a network, or to nothing. */
export const pointed = ({ kind, meta, spec }: FloatingIP, instance?: string, network?: string): FloatingIP => ({
  kind,
  meta,
  spec: { externalNetwork: spec.externalNetwork, ...(instance && { instance, network }) },
});

/** pointFloatingIP at an instance's port in a network, or at nothing. */
export const pointFloatingIP = (id: string, instance?: string, network?: string) =>
  change(floatingIPs, id, (ip) => pointed(ip, instance, network));

export const createBalancer = (body: LoadBalancer) => ok(api.POST('/v1/load-balancers', { body }));
export const removeBalancer = (l: LoadBalancer) =>
  ok(api.DELETE('/v1/load-balancers/{id}', { params: { path: { id: l.meta.id ?? '' } } }));

export const trace = (from: string, to: string, packet: string, project: string | undefined) =>
  ok(api.GET('/v1/network-trace', { params: { query: none({ from, to, packet, project }) } }));
