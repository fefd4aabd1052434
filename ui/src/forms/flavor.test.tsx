// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import { FlavorForm } from './flavor';

afterEach(cleanup);

const gib = 2 ** 30;

function show(flavor?: Schemas['Flavor']) {
  const asked = answering(flavor ? { [`flavors/${flavor.meta.id}`]: flavor } : {});
  render(
    <QueryClientProvider client={newQueryClient()}>
      <FlavorForm flavor={flavor} onClose={() => undefined} />
    </QueryClientProvider>,
  );
  return asked;
}

test('a flavor is created with its CPU policy and huge pages', async () => {
  const asked = show();
  await userEvent.type(screen.getByLabelText(/^Name/), 'pinned');
  await userEvent.selectOptions(screen.getByLabelText('CPUs'), 'Instances choose');
  await userEvent.selectOptions(screen.getByLabelText('Huge pages'), '1 GiB');
  await userEvent.click(screen.getByRole('button', { name: 'Create' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toMatchObject({ spec: { vcpus: 2, cpuPolicy: 'optional', hugePages: '1Gi' } });
});

test('another size keeps the CPU policy and the huge pages', async () => {
  const asked = show({
    kind: 'Flavor',
    meta: { id: 'flv-1', name: 'pinned', revision: 3 },
    spec: { vcpus: 2, memoryBytes: 4 * gib, cpuPolicy: 'dedicated', hugePages: '2Mi' },
  });
  const vcpus = screen.getByLabelText(/^vCPUs/);
  await userEvent.clear(vcpus);
  await userEvent.type(vcpus, '4');
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({ method: 'PATCH', body: { spec: { vcpus: 4 } } });
  expect(asked[0]?.body).not.toHaveProperty('spec.cpuPolicy');
  expect(asked[0]?.body).not.toHaveProperty('spec.hugePages');
});
