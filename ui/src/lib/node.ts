// The state and the figures of nodes and GPUs.
import type { Schemas } from '../api/client';

export type Node = Schemas['Node'];
export type Gpu = Schemas['GPU'];
type Instance = Schemas['Instance'];
export type NodeState = NonNullable<NonNullable<Node['assignment']>['state']> | 'Joining';

/** nodeState returns a node's state. In a cluster of one node no other node monitors it: it is ready once it has
 * reported. */
export const nodeState = (n: Node): NodeState => n.assignment?.state || (n.status?.seenAt ? 'Ready' : 'Joining');

export const nodeActions = ['drain', 'undrain', 'close', 'open', 'remove'] as const;
export type NodeAction = (typeof nodeActions)[number];

/** actionsOf returns what an operator may do with a node in its state. */
export function actionsOf(n: Node): NodeAction[] {
  const service: NodeAction[] = n.spec.drain ? ['undrain'] : [n.spec.unschedulable ? 'open' : 'close', 'drain'];
  return ['Drained', 'Lost', 'Suspect'].includes(nodeState(n)) ? [...service, 'remove'] : service;
}

/** problems returns the conditions that are not met. */
export const problems = (o: Pick<Node | Gpu, 'status'>): string[] =>
  (o.status?.conditions ?? []).filter((c) => !c.status).map((c) => c.message || c.reason || c.type);

/** localStorage returns a node's own pool, if the node reports its limit. */
export const localStorage = (n: Pick<Node, 'status'>): Schemas['StoragePool'] | undefined =>
  n.status?.pools?.find((p) => p.name === 'local' && (p.limitBytes ?? 0) > 0);

/** tenantsOf returns the instances with a virtual GPU on a GPU, the largest share first. */
export const tenantsOf = (g: Gpu, instances: Instance[]): Instance[] =>
  instances
    .filter((i) => i.assignment?.gpu === g.meta.id)
    .sort(
      (a, b) =>
        (b.assignment?.vgpuSharePercent ?? 0) - (a.assignment?.vgpuSharePercent ?? 0) ||
        a.meta.name.localeCompare(b.meta.name),
    );

/** promised sums what the tenants of a GPU are allocated; VRAM beyond that of the GPU is overcommitted. */
export function promised(tenants: Instance[]): { vramBytes: number; sharePercent: number } {
  const sum = { vramBytes: 0, sharePercent: 0 };
  for (const { assignment: a } of tenants) {
    sum.vramBytes += a?.vgpuVramBytes ?? 0;
    sum.sharePercent += a?.vgpuSharePercent ?? 0;
  }
  return sum;
}

export type HardwareCheck = Schemas['HardwareCheck'];

/** hardwareTones maps the states of checks to colours. */
export const hardwareTones = { ok: 'good', warning: 'warning', failed: 'bad', unknown: 'off' } as const;

const worst: HardwareCheck['state'][] = ['failed', 'warning', 'unknown', 'ok'];

/** checksOf returns the checks of a node's machine, the worst first. */
export const checksOf = (n: Pick<Node, 'status'>): HardwareCheck[] =>
  [...(n.status?.hardware ?? [])].sort((a, b) => worst.indexOf(a.state) - worst.indexOf(b.state));

type OnCard = Schemas['GPUTenant'];

/** A tenant of a GPU: its placement, and what it uses there now. */
export interface Tenant {
  id: string;
  instance?: Instance;
  now?: OnCard;
  share: number;
  limit: number;
}

/** joined combines the instances placed on a GPU with those present: either list may be older than the other. */
export const joined = (placed: Instance[], there: OnCard[]): Tenant[] => [
  ...placed.map((i) => ({
    id: i.meta.id ?? '',
    instance: i,
    now: there.find((x) => x.instance === i.meta.id),
    share: i.assignment?.vgpuSharePercent ?? 0,
    limit: i.assignment?.vgpuVramBytes ?? 0,
  })),
  ...there
    .filter((x) => !placed.some((i) => i.meta.id === x.instance))
    .map((x) => ({ id: x.instance, now: x, share: x.sharePercent, limit: x.vramLimitBytes })),
];

/** troublesOf returns what an operator must look after before customers use a node: its conditions that are not met, and
 * the hardware checks that have failed. */
export const troublesOf = (n: Pick<Node, 'status'>): string[] => [
  ...problems(n),
  ...checksOf(n)
    .filter((c) => c.state === 'failed')
    .map((c) => c.found),
];
