import { expect, test } from 'vitest';
import {
  actionsOf,
  checksOf,
  joined,
  localStorage,
  nodeState,
  problems,
  promised,
  tenantsOf,
  type Gpu,
  type Node,
} from './node';

const gpu: Gpu = { kind: 'GPU', meta: { id: 'gpu-1', name: 'n1-gpu0' }, spec: {} };
const on = (name: string, card: string, share: number) => ({
  kind: 'Instance',
  meta: { name },
  spec: { flavor: 'f' },
  assignment: { gpu: card, vgpuVramBytes: 2 ** 30, vgpuSharePercent: share },
});

test('who is on a card, and what they were promised', () => {
  const all = [
    on('b', 'gpu-1', 0),
    on('a', 'gpu-1', 0),
    on('c', 'gpu-1', 50),
    on('d', 'gpu-2', 90),
    { kind: 'Instance', meta: { name: 'e' }, spec: { flavor: 'f' } },
  ];
  const tenants = tenantsOf(gpu, all);
  expect(tenants.map((i) => i.meta.name)).toEqual(['c', 'a', 'b']);
  expect(promised(tenants)).toEqual({ vramBytes: 3 * 2 ** 30, sharePercent: 50 });
});

test('what is wrong with a node', () => {
  const node: Node = {
    kind: 'Node',
    meta: { name: 'n1' },
    spec: {},
    status: {
      conditions: [
        { type: 'Libvirt', status: true },
        { type: 'Gpud', status: false, message: 'gpud does not answer' },
        { type: 'Disk', status: false },
      ],
    },
  };
  expect(problems(node)).toEqual(['gpud does not answer', 'Disk']);
  expect(nodeState(node)).toBe('Joining');
  expect(nodeState({ ...node, status: { seenAt: '2026-03-01T00:00:00Z' } })).toBe('Ready');
  expect(nodeState({ ...node, assignment: { state: 'Lost' }, status: { seenAt: '2026-03-01T00:00:00Z' } })).toBe(
    'Lost',
  );
});

test('a node of a version before says no limit', () => {
  const local = { name: 'local', limitBytes: 10, promisedBytes: 4 };
  expect(localStorage({ status: { pools: [{ name: 'shared', limitBytes: 5 }, local] } })).toEqual(local);
  expect(localStorage({ status: { pools: [{ name: 'local', sizeBytes: 5 }] } })).toBeUndefined();
  expect(localStorage({})).toBeUndefined();
});

test('who was placed on a card, and who is there', () => {
  const instance = {
    meta: { id: 'ins-1', name: 'a' },
    spec: { flavor: 'f' },
    assignment: { vgpuSharePercent: 50, vgpuVramBytes: 4 },
  } as Parameters<typeof joined>[0][number];
  const now = (id: string) => ({
    instance: id,
    sharePercent: 10,
    vramLimitBytes: 8,
    vramResidentBytes: 2,
    vramSwappedBytes: 0,
    gpuPercent: 5,
  });
  const [a, b] = joined([instance], [now('ins-2'), now('ins-1')]);
  expect([a?.id, a?.now?.vramResidentBytes, a?.share, a?.limit]).toEqual(['ins-1', 2, 50, 4]);
  expect([b?.id, b?.instance, b?.share, b?.limit]).toEqual(['ins-2', undefined, 10, 8]);
  expect(joined([instance], [])[0]?.now).toBeUndefined();
});

test('checks of hardware: the worst first', () => {
  const check = (id: 'kvm' | 'bmc' | 'disks' | 'gpus', state: 'ok' | 'warning' | 'failed' | 'unknown') => ({
    id,
    state,
    found: '',
  });
  const status = {
    hardware: [check('kvm', 'ok'), check('bmc', 'unknown'), check('gpus', 'warning'), check('disks', 'failed')],
  };
  expect(checksOf({ status }).map((c) => c.id)).toEqual(['disks', 'gpus', 'bmc', 'kvm']);
  expect(checksOf({ status: {} })).toEqual([]);
});

test.each([
  ['Ready', {}, ['close', 'drain']],
  ['Ready', { unschedulable: true }, ['open', 'drain']],
  ['Draining', { drain: true, unschedulable: true }, ['undrain']],
  ['Drained', { drain: true }, ['undrain', 'remove']],
  ['Lost', {}, ['close', 'drain', 'remove']],
  ['Suspect', { unschedulable: true }, ['open', 'drain', 'remove']],
] as const)('what an operator may do with a node that is %s with %j', (state, spec, actions) => {
  const node: Node = { kind: 'Node', meta: { name: 'n1' }, spec, assignment: { state } };
  expect(actionsOf(node)).toEqual(actions);
});
