// How to sign in to a running instance.
import type { Instance, Schemas } from '../api/client';

/** The distributions whose cloud images have a default user with the distribution's name. */
const distributions = /^(almalinux|alpine|arch|debian|fedora|rocky|ubuntu)(?![a-z])/i;

/** userOf returns the default user of an image by its name, if known. */
export const userOf = (image: string): string | undefined => distributions.exec(image)?.[1]?.toLowerCase();

interface Address {
  spec: { instance?: string };
  assignment?: { address?: string };
}

export interface Ssh {
  command: string;
  /** Whether it is reachable from outside its network. */
  outside: boolean;
}

/** sshTo returns how to reach an instance that has a key: by its floating IP, or else by its first address. */
export function sshTo(i: Instance, user: string | undefined, ips: readonly Address[]): Ssh | undefined {
  if (!i.spec.sshKeys?.length) return undefined;
  const floating = ips.find((f) => f.spec.instance === i.meta.id && f.assignment?.address)?.assignment?.address;
  const [port] = i.assignment?.ports ?? [];
  const address = floating ?? port?.address4 ?? port?.address6;
  return address === undefined
    ? undefined
    : { command: `ssh ${user ?? 'USER'}@${address}`, outside: floating !== undefined };
}

/** gatewayTo returns the command that reaches an instance through the cluster's SSH gateway. */
export function gatewayTo(
  c: Schemas['InstanceConnection'] | undefined,
  user: string | undefined,
  here = globalThis.location?.hostname ?? '',
): { command: string; fingerprint: string } | undefined {
  if (!c?.gateway || !c.target) return undefined;
  const { host, port, fingerprint } = c.gateway;
  const name = c.user ? c.target : `${user ?? 'USER'}%${c.target}`;
  return { command: `ssh ${port === 22 ? '' : `-p ${port} `}${name}@${host || here}`, fingerprint };
}

/** forwardTo returns the command that forwards an app's port to its address on the user's computer, where the cluster has
 * no app gateway. The SSH gateway connects to the instance's ID without signing in to it. */
export function forwardTo(
  c: Schemas['InstanceConnection'],
  instance: string,
  app: Schemas['InstanceApp'],
  here = globalThis.location?.hostname ?? '',
): string | undefined {
  if (c.appDomain || !c.gateway || !c.target) return undefined;
  const { host, port } = c.gateway;
  const local = new URL(app.address).port || '80';
  return `ssh ${port === 22 ? '' : `-p ${port} `}-N -L ${local}:${instance}:${app.port} ${c.target}@${host || here}`;
}
