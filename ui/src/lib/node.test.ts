import { expect, test } from 'vitest';
import { nodeState, problems, promised, tenantsOf, type Gpu, type Node } from './node';

const gpu: Gpu = { kind: 'GPU', meta: { id: 'gpu-1', name: 'n1-gpu0' }, spec: {} };
const on = (name: string, card: string, share: number) => ({
  kind: 'Instance', meta: { name }, spec: { flavor: 'f' }, assignment: { gpu: card, vgpuVramBytes: 2 ** 30, vgpuSharePercent: share },
});

test('who is on a card, and what they were promised', () => {
  const all = [on('b', 'gpu-1', 0), on('a', 'gpu-1', 0), on('c', 'gpu-1', 50), on('d', 'gpu-2', 90), { kind: 'Instance', meta: { name: 'e' }, spec: { flavor: 'f' } }];
  const tenants = tenantsOf(gpu, all);
  expect(tenants.map((i) => i.meta.name)).toEqual(['c', 'a', 'b']);
  expect(promised(tenants)).toEqual({ vramBytes: 3 * 2 ** 30, sharePercent: 50 });
});

test('what is wrong with a node', () => {
  const node: Node = { kind: 'Node', meta: { name: 'n1' }, spec: {}, status: { conditions: [{ type: 'Libvirt', status: true }, { type: 'Gpud', status: false, message: 'gpud does not answer' }, { type: 'Disk', status: false }] } };
  expect(problems(node)).toEqual(['gpud does not answer', 'Disk']);
  expect(nodeState(node)).toBe('Joining');
  expect(nodeState({ ...node, status: { seenAt: '2026-03-01T00:00:00Z' } })).toBe('Ready');
  expect(nodeState({ ...node, assignment: { state: 'Lost' }, status: { seenAt: '2026-03-01T00:00:00Z' } })).toBe('Lost');
});
