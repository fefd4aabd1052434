// The requests of a tenant's forms as commands.
import type { Schemas } from '../api/client';
import { lines, quote, sizeFlag } from './shell';

const some = (words: (string | false | undefined | 0)[]) =>
  lines(words.filter((w) => typeof w === 'string' && w !== '') as string[]);
const flag = (name: string, value: string | undefined) => value && `--${name} ${quote(value)}`;
const of = (noun: string, name: string, fallback = 'NAME') => `basalt ${noun} create ${quote(name || fallback)}`;
const inProject = (name: string | undefined) => flag('project', name);

export function volumeCommand({ meta, spec: s }: Schemas['Volume']): string {
  const q = s.qos ?? {};
  return some([
    of('volume', meta.name),
    inProject(meta.project),
    s.sizeBytes && `--size ${sizeFlag(s.sizeBytes)}`,
    flag('image', s.image),
    flag('snapshot', s.snapshot),
    flag('instance', s.instance),
    s.encrypted && '--encrypted',
    flag('storage-pool', s.pool),
    q.readIOPS && `--read-iops ${q.readIOPS}`,
    q.writeIOPS && `--write-iops ${q.writeIOPS}`,
    q.readBytesPerSecond && `--read-rate ${sizeFlag(q.readBytesPerSecond)}`,
    q.writeBytesPerSecond && `--write-rate ${sizeFlag(q.writeBytesPerSecond)}`,
  ]);
}

export const networkCommand = ({ meta, spec: s }: Schemas['Network']): string =>
  some([
    of('network', meta.name),
    inProject(meta.project),
    flag('cidr4', s.cidr4),
    flag('cidr6', s.cidr6),
    flag('dns', s.dnsServers?.join(',')),
    s.isolated && '--isolated',
    s.mtu && `--mtu ${s.mtu}`,
  ]);

/** ruleText formats a rule as --allow accepts it. */
export function ruleText(r: Schemas['SecurityRule'], groupName: (id: string) => string = (id) => id): string {
  const at = r.direction === 'egress' ? 'to' : 'from';
  return [r.direction, r.protocol, r.ports, r.group ? `${at} group ${groupName(r.group)}` : r.cidr && `${at} ${r.cidr}`]
    .filter(Boolean)
    .join(' ');
}

export const groupCommand = (
  verb: 'create' | 'set',
  { meta, spec }: Schemas['SecurityGroup'],
  groupName?: (id: string) => string,
): string =>
  some([
    `basalt security-group ${verb} ${quote(meta.name || 'NAME')}`,
    inProject(meta.project),
    ...(spec.rules ?? []).map((r) => `--allow ${quote(ruleText(r, groupName))}`),
  ]);

export const floatingCommand = ({ meta, spec: s }: Schemas['FloatingIP']): string =>
  some([
    of('floating-ip', meta.name),
    inProject(meta.project),
    flag('external-network', s.externalNetwork),
    flag('instance', s.instance),
    flag('network', s.network),
  ]);

/** balancerCommand returns the command that creates a load balancer, or changes the one whose name was was. */
export const balancerCommand = ({ meta, spec: s }: Schemas['LoadBalancer'], was?: string): string =>
  some([
    ...(was === undefined
      ? [of('load-balancer', meta.name)]
      : [`basalt load-balancer set ${quote(was)}`, meta.name !== was && flag('name', meta.name)]),
    inProject(meta.project),
    was === undefined && flag('network', s.network || 'NETWORK'),
    flag('protocol', s.protocol),
    `--port ${s.port || 'PORT'}`,
    ...(s.backends ?? []).map((b) => `--backend ${quote(`${b.instance}:${b.port}`)}`),
    was !== undefined && !s.backends?.length && '--no-backends',
    s.health ? '--health' : was !== undefined && '--health=false',
    s.floatingIP ? flag('floating-ip', s.floatingIP) : was !== undefined && '--inside',
  ]);
