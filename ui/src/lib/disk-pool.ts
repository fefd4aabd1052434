// Storage pools on disks: those that operators have given a pool's name.
import type { Schemas } from '../api/client';

type Disk = Schemas['Disk'];
type Node = Schemas['Node'];

/** sharedPools are the storage pools that all nodes reach. */
export const sharedPools = ['ceph', 'ceph-hdd', 'ceph-ssd', 'ceph-nvme', 'shared'];
/** builtinPools are the storage pools whose names are fixed. */
export const builtinPools = [...sharedPools, 'local'];

/** DiskPool is a storage pool on disks, of one node or of several. */
export interface DiskPool {
  name: string;
  nodes: string[];
}

/** diskPools returns the pools on disks by name, with the names of their nodes. */
export function diskPools(disks: Disk[], nodes: Node[]): DiskPool[] {
  const pools = new Map<string, Set<string>>();
  for (const { spec, status } of disks) {
    if (spec.use !== 'local' || !spec.pool) continue;
    const of = pools.get(spec.pool) ?? new Set();
    if (status?.node) of.add(nodes.find((n) => n.meta.id === status.node)?.meta.name ?? status.node);
    pools.set(spec.pool, of);
  }
  return [...pools]
    .map(([name, of]) => ({ name, nodes: [...of].toSorted() }))
    .toSorted((a, b) => a.name.localeCompare(b.name));
}
