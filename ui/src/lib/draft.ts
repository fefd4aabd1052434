// The content of the form that creates an instance.
import type { Instance } from '../api/client';
import { machineSpec, type Machine } from './machine';
import { withPassword } from './password';
import type { Tier } from './tier';

export const gib = 2 ** 30;

export interface Draft {
  name: string;
  project: string;
  /** An app's name; if empty, the image is chosen. */
  app: string;
  image: string;
  /** An installation medium's name; if empty, an app or an image is chosen. */
  medium: string;
  /** A second medium, such as one with drivers; empty for none. */
  second: string;
  /** Size of a blank root disk; empty for the flavor's. */
  rootGib: string;
  flavor: string;
  vgpu: boolean;
  pool: string;
  /** Model of the GPU; empty for any of the pool. */
  model: string;
  vramGib: string;
  share: string;
  /** Empty for standard. */
  tier: '' | Tier;
  /** Names; empty for the project's default network. */
  networks: string[];
  groups: string[];
  keys: string;
  userData: string;
  /** For the console; empty for none. */
  password: string;
  machine: Machine;
  /** Storage pool of the root volume; empty for the first that is available. */
  storagePool: string;
  /** What happens when no node has room: it waits, it waits until a time, or it is not created. */
  whenFull: 'queue' | 'until' | 'refuse';
  /** In the format of a datetime-local input, in local time. */
  until: string;
}

/** utcOf returns the time of a datetime-local input in UTC, or undefined if it is not a time. */
function utcOf(local: string): string | undefined {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? undefined : at.toISOString().replace('.000Z', 'Z');
}

/** queueSpec returns the fields of an instance's spec about the queue. */
function queueSpec({ whenFull, until }: Draft): Partial<Instance['spec']> {
  if (whenFull === 'refuse') return { whenFull: 'Refuse' };
  const queueUntil = whenFull === 'until' ? utcOf(until) : undefined;
  return queueUntil ? { queueUntil } : {};
}

/** sourceSpec returns the fields of an instance's spec about what it boots from. */
function sourceSpec(d: Draft): Partial<Instance['spec']> {
  if (d.app) return { app: d.app };
  if (!d.medium) return { image: d.image };
  return {
    media: d.second ? [d.medium, d.second] : [d.medium],
    ...(Number(d.rootGib) > 0 && { rootBytes: Math.round(Number(d.rootGib) * gib) }),
  };
}

/**
 * instanceOf returns the instance to send for a draft, which the command and curl show too. A password is added to
 * the user data, or else to the app's.
 */
export function instanceOf(d: Draft, ofApp = ''): Instance {
  const userData = d.password ? withPassword(d.userData || ofApp, d.password) : d.userData;
  const sshKeys = d.keys
    .split('\n')
    .map((k) => k.trim())
    .filter(Boolean);
  // Groups belong to ports; without a network they belong to the default network's port.
  const networks = (d.networks.length > 0 || d.groups.length === 0 ? d.networks : ['default']).map((network) => ({
    network,
    ...(d.groups.length > 0 && { securityGroups: d.groups }),
  }));
  return {
    kind: 'Instance',
    meta: { name: d.name.trim(), project: d.project },
    spec: {
      flavor: d.flavor,
      ...sourceSpec(d),
      ...(d.vgpu && {
        vgpu: {
          vramBytes: Math.round(Number(d.vramGib) * gib),
          ...(Number(d.share) > 0 && { sharePercent: Number(d.share) }), // best effort without
          ...(d.tier && { tier: d.tier }),
          ...(d.pool && { pool: d.pool }),
          ...(d.model && { model: d.model }),
        },
      }),
      ...(d.storagePool && { storagePool: d.storagePool }),
      ...machineSpec(d.machine, d.vgpu),
      ...queueSpec(d),
      ...(networks.length > 0 && { networks }),
      ...(sshKeys.length > 0 && { sshKeys }),
      ...(userData && { userData }),
    },
  };
}

type Needed = 'meta.name' | 'spec.image' | 'spec.flavor' | 'spec.vgpu.vramBytes';

/** missing lists the required fields, by path, that are empty. */
export function missing(d: Draft): Needed[] {
  const paths: Needed[] = [];
  if (!d.name.trim()) paths.push('meta.name');
  if (!d.app && !d.image && !d.medium) paths.push('spec.image');
  if (!d.flavor) paths.push('spec.flavor');
  if (d.vgpu && !(Number(d.vramGib) > 0)) paths.push('spec.vgpu.vramBytes');
  return paths;
}

/** letsIn reports whether a user may be able to sign in to an instance: by a key, by what its user data may set, or by
 * what an installer sets. */
export function letsIn(i: Instance, ofApp = ''): boolean {
  return (
    (!i.spec.image && !i.spec.app) ||
    (i.spec.sshKeys ?? []).length > 0 ||
    /authorized_keys|import[_-]id|passwd|password/i.test(i.spec.userData || ofApp)
  );
}
