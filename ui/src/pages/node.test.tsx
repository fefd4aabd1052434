// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import { NodePage } from './node';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '#/nodes/node-1'));

const gib = 2 ** 30;
const gpu = (i: number) => ({
  kind: 'GPU',
  meta: { id: `gpu-${i}`, name: `n1-gpu-${i}` },
  spec: {},
  status: { node: 'node-1', model: 'NVIDIA H100', vramBytes: 80 * gib, busyPercent: 5 * i, temperatureCelsius: 40 + i },
});
const instance = {
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'train' },
  spec: {},
  assignment: { gpu: 'gpu-3', vgpuVramBytes: 60 * gib, vgpuSharePercent: 50 },
};

/** show renders the page of a node with n GPUs, and returns the paths of its requests. */
function show(n: number) {
  const objects: Record<string, object> = {
    'nodes/node-1': { kind: 'Node', meta: { id: 'node-1', name: 'n1' }, spec: {}, status: {} },
    gpus: { items: Array.from({ length: n }, (_, i) => gpu(i)) },
    instances: { items: [instance] },
  };
  const asked = new Set<string>();
  vi.stubGlobal('fetch', (r: Request) => {
    const path = new URL(r.url).pathname.replace('/portal/v1/', '');
    asked.add(path);
    const samples = path.endsWith('/samples')
      ? { from: '2026-01-01T00:00:00Z', stepSeconds: 5, series: [] }
      : undefined;
    return Promise.resolve(Response.json(objects[path] ?? samples ?? { items: [] }));
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <NodePage id="node-1" />
    </QueryClientProvider>,
  );
  return asked;
}

test('16 GPUs are a grid, of which one is shown in detail', async () => {
  const asked = show(16);
  const grid = await screen.findByRole('list', { name: 'GPUs' });
  const cells = within(grid).getAllByRole('button');
  expect(cells).toHaveLength(16);
  expect(cells[3]).toHaveAccessibleName('n1-gpu-3 Allocated 75% 1 vGPUs');
  expect(cells[0]).toHaveAttribute('aria-pressed', 'true');
  await userEvent.click(cells[3]!);
  expect(cells[3]).toHaveAttribute('aria-pressed', 'true');
  expect(location.hash).toBe('#/nodes/node-1?gpu=gpu-3');
  expect(await screen.findByText('Allocated: 60 GiB of VRAM, 50% of GPU time.')).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Utilization' }));
  expect(cells[3]).toHaveTextContent('15%');
  // Only the samples and tenants of the GPUs that were selected.
  await waitFor(() =>
    expect([...asked].filter((p) => p.startsWith('gpus/')).sort()).toEqual([
      'gpus/gpu-0/samples',
      'gpus/gpu-0/tenants',
      'gpus/gpu-3/samples',
      'gpus/gpu-3/tenants',
    ]),
  );
  expect(asked.size).toBeLessThanOrEqual(20);
});

test('a few GPUs have a card each', async () => {
  show(2);
  expect(await screen.findByText('n1-gpu-1 on n1')).toBeVisible();
  expect(screen.getByText('n1-gpu-0 on n1')).toBeVisible();
  expect(screen.queryByRole('list', { name: 'GPUs' })).toBeNull();
});

test('the CPUs that the node keeps are shown, and an operator sets their number', async () => {
  const node = {
    kind: 'Node',
    meta: { id: 'node-1', name: 'n1', revision: 7 },
    spec: { unschedulable: true, peerAddresses: ['192.0.2.1:7481'] },
    status: {
      reservedCpus: '0-1',
      processors: {
        cpus: 16,
        instancesMilliCpus: 13375,
        vcpusPerCpu: 4,
        parts: [
          { name: 'system', count: 1, milliCpus: 500 },
          { name: 'basalt', count: 1, milliCpus: 125 },
          { name: 'osds', count: 2, milliCpus: 2000 },
        ],
      },
    },
  };
  const asked = answering({ 'nodes/node-1': node });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <NodePage id="node-1" />
    </QueryClientProvider>,
  );
  expect(await screen.findByText('system 0.5, Basalt 0.13, Ceph OSDs (2) 2, Never dedicated: 0-1')).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Edit' }));
  const cpus = await screen.findByLabelText('CPUs for the node');
  await userEvent.clear(cpus);
  await userEvent.type(cpus, '4');
  expect(screen.getByText(/--reserved-cpus 4/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked[0]?.body).toEqual({ spec: { reservedCpus: 4 } }));
});
