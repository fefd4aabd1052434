import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { diskPools } from './disk-pool';

const disk = (name: string, node: string, spec: Schemas['DiskSpec']): Schemas['Disk'] => ({
  kind: 'Disk',
  meta: { id: `disk-${name}`, name },
  spec,
  status: { node },
});
const node = (id: string, name: string) => ({ kind: 'Node', meta: { id, name }, spec: {} }) as Schemas['Node'];

test('disks of several nodes may be of one pool, other disks of none', () => {
  const disks = [
    disk('a', 'node-2', { use: 'local', pool: 'fast' }),
    disk('b', 'node-1', { use: 'local', pool: 'fast' }),
    disk('c', 'node-1', { use: 'local', pool: 'fast' }),
    disk('d', 'node-1', { use: 'local', pool: 'archive' }),
    disk('e', 'node-3', { use: 'ceph' }),
    disk('f', 'node-3', {}),
  ];
  expect(diskPools(disks, [node('node-1', 'alpha'), node('node-2', 'beta')])).toEqual([
    { name: 'archive', nodes: ['alpha'] },
    { name: 'fast', nodes: ['alpha', 'beta'] },
  ]);
});

test('a node whose name is unknown has its ID', () => {
  expect(diskPools([disk('a', 'node-9', { use: 'local', pool: 'fast' })], [])).toEqual([
    { name: 'fast', nodes: ['node-9'] },
  ]);
});
