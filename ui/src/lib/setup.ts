// How far a cluster is set up: derived from the existing objects, stored nowhere.
import type { Schemas } from '../api/client';
import type { There } from '../api/setup';
import { readyWithGpu } from './first-steps';
import { checksOf, nodeState } from './node';

export const steps = [
  'you',
  'nodes',
  'network',
  'address',
  'brand',
  'prices',
  'images',
  'sizes',
  'customer',
  'machine',
] as const;
export type Step = (typeof steps)[number];

/** example reports whether a price book is unchanged since the cluster created it. */
export const example = (b: Schemas['PriceBook']) => b.meta.name === 'default' && (b.meta.generation ?? 0) <= 1;

export function done(x: There): Record<Step, boolean> {
  return {
    you: x.totp,
    nodes:
      x.nodes.length > 0 &&
      x.nodes.every((n) => nodeState(n) === 'Ready' && checksOf(n).every((c) => c.state !== 'failed')),
    network: x.external.some((n) => n.status?.phase === 'Ready'),
    address: x.address.startsWith('https://'),
    brand: (x.branding.revision ?? 0) > 0,
    prices: x.books.some((b) => !example(b)),
    images: x.images.some((i) => i.spec.public && i.status?.phase === 'Ready'),
    sizes: x.flavors.length > 0 && x.pools.length > 0,
    customer: x.organizations.length > 0,
    machine:
      x.gpus > 0 ? readyWithGpu(x.instances) !== undefined : x.instances.some((i) => i.status?.phase === 'Running'),
  };
}

/** fresh reports whether a cluster has not been used yet. */
export const fresh = (x: There) => x.images.length === 0 && x.organizations.length === 0;

export const next = (s: Step): Step | undefined => steps[steps.indexOf(s) + 1];

const stored = 'basalt.setup';

/** seen: the wizard has opened by itself; dismissed: the user has closed the reminder. */
export const remembered = () => localStorage.getItem(stored);
export const remember = (what: 'seen' | 'dismissed') => localStorage.setItem(stored, what);
