// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Instance } from '../../api/client';
import { answering, said } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { ChangeInstance } from './change';

afterEach(cleanup);

const gib = 2 ** 30;
const flavor = (name: string, cpuPolicy?: string) => ({
  kind: 'Flavor',
  meta: { id: `flv-${name}`, name },
  spec: { vcpus: 2, memoryBytes: gib, ...(cpuPolicy && { cpuPolicy }) },
});

const offer = (micros: number) => ({ currency: 'EUR', reservedMicros: micros, fullUseMicros: micros });

async function show(spec: Partial<Instance['spec']>, answer: Partial<Instance> = {}, offers: object[] = []) {
  const instance: Instance = {
    kind: 'Instance',
    meta: { id: 'ins-1', name: 'web-1', project: 'prj-1', revision: 4 },
    spec: { flavor: 'flv-choice', image: 'img-1', ...spec },
  };
  const asked = answering({
    flavors: { items: [flavor('choice', 'optional'), flavor('small')] },
    'instances/ins-1': { ...instance, ...answer },
    offers: { items: offers },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <ChangeInstance instance={instance} onClose={() => undefined} />
    </QueryClientProvider>,
  );
  await screen.findByRole('option', { name: 'small' });
  return {
    save: async () => {
      await userEvent.click(screen.getByRole('button', { name: 'Save' }));
      await waitFor(() => expect(asked.filter((a) => !a.dry)).toHaveLength(1));
      return asked.find((a) => !a.dry)?.body;
    },
    tried: async () => {
      await waitFor(() => expect(asked.some((a) => a.dry)).toBe(true), { timeout: 10_000 });
      return asked.findLast((a) => a.dry)?.body;
    },
  };
}

test('CPUs and huge pages are changed', async () => {
  const { save } = await show({});
  await userEvent.selectOptions(screen.getByLabelText('CPUs'), 'Dedicated CPUs');
  await userEvent.selectOptions(screen.getByLabelText('Huge pages'), '2 MiB');
  expect(await save()).toEqual({ spec: { cpuPolicy: 'dedicated', hugePages: '2Mi' } });
});

test('a flavor that does not leave CPUs to instances ends their choice', async () => {
  const { save } = await show({ cpuPolicy: 'dedicated' });
  await userEvent.selectOptions(screen.getByLabelText('Flavor'), 'small');
  expect(await save()).toEqual({ spec: { flavor: 'flv-small', cpuPolicy: null } });
});

test('another share keeps the model of the GPU, and what the form does not show', async () => {
  const { save } = await show({
    vgpu: { pool: 'default', model: 'NVIDIA L4', vramBytes: 4 * gib, sharePercent: 50 },
    cpu: 'host',
    firmware: 'uefi',
    tpm: true,
  });
  const share = screen.getByLabelText(/^Guaranteed GPU time/);
  await userEvent.clear(share);
  await userEvent.type(share, '25');
  expect(await save()).toEqual({ spec: { vgpu: { sharePercent: 25 } } });
});

test('the processor is changed, and back', async () => {
  const { save } = await show({});
  await userEvent.selectOptions(screen.getByLabelText('Processor'), 'The node’s processor');
  expect(screen.getByText(/A change takes effect when the instance is next stopped and started/)).toBeVisible();
  expect(screen.getByText(/--cpu host/)).toBeInTheDocument();
  expect(await save()).toEqual({ spec: { cpu: 'host' } });
});

test('the processor that all nodes support is the default', async () => {
  const { save } = await show({ cpu: 'host' });
  await userEvent.selectOptions(screen.getByLabelText('Processor'), 'What all nodes support');
  expect(screen.getByText(/--cpu baseline/)).toBeInTheDocument();
  expect(await save()).toEqual({ spec: { cpu: null } });
});

test('another size is tried, with its price beside the present one, and may wait in the queue', async () => {
  const { save, tried } = await show(
    {},
    { warnings: [{ code: 'no-room-now', message: said('full') }], queue: { position: 3, length: 3, samples: 0 } },
    [offer(20_000)],
  );
  expect(screen.queryByLabelText(/^Wait in the queue/)).toBeNull();
  await userEvent.selectOptions(screen.getByLabelText('Flavor'), 'small');
  await userEvent.click(screen.getByLabelText(/^Wait in the queue/));
  expect(await tried()).toEqual({ spec: { flavor: 'flv-small', whenFull: 'Queue' } });
  expect(await screen.findByText('There is no room for the new size now')).toBeVisible();
  expect(screen.getByText(/position 3 of 3/)).toBeVisible();
  expect(await screen.findByText('Price now')).toBeVisible();
  expect(screen.getByText('Price of the new size')).toBeVisible();
  expect(screen.getByText(/--queue/)).toBeInTheDocument();
  expect(await save()).toEqual({ spec: { flavor: 'flv-small', whenFull: 'Queue' } });
});
