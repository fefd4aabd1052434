// The form of a load balancer, and the spec that it sends.
import type { Schemas } from '../api/client';
import { nextKey } from './merge';

type LoadBalancer = Schemas['LoadBalancer'];

export interface Backend {
  key: number;
  instance: string;
  port: string;
}

export interface BalancerForm {
  name: string;
  network: string;
  protocol: 'tcp' | 'udp';
  port: string;
  health: boolean;
  floatingIP: string;
  backends: Backend[];
}

export const emptyBalancer: BalancerForm = {
  name: '',
  network: '',
  protocol: 'tcp',
  port: '80',
  health: true,
  floatingIP: '',
  backends: [],
};

/** balancerForm returns the form of a load balancer. */
export const balancerForm = ({ meta, spec: s }: LoadBalancer): BalancerForm => ({
  name: meta.name,
  network: s.network,
  protocol: s.protocol,
  port: String(s.port),
  health: s.health ?? false,
  floatingIP: s.floatingIP ?? '',
  backends: (s.backends ?? []).map((b) => ({ key: nextKey(), instance: b.instance, port: String(b.port) })),
});

/** balancerSpec returns the spec of a form; named replaces IDs by names where they are known. */
export const balancerSpec = (f: BalancerForm, named: (id: string) => string = (id) => id): LoadBalancer['spec'] => ({
  network: named(f.network),
  protocol: f.protocol,
  port: Number(f.port),
  backends: f.backends.map((b) => ({ instance: named(b.instance), port: Number(b.port) })),
  ...(f.health && { health: true }),
  ...(f.floatingIP && { floatingIP: named(f.floatingIP) }),
});
