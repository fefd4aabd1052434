// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { Ceph } from './ceph';
import { Disks } from './disks';

afterEach(cleanup);

const cluster = (spec: object) => ({
  kind: 'CephCluster',
  meta: { id: 'ceph-1', name: 'ceph', revision: 7 },
  spec: { enabled: true, replicas: 2, failureDomain: 'osd', ...spec },
});

function show(spec: object) {
  const asked = answering({
    'ceph-clusters': { items: [cluster(spec)] },
    'ceph-clusters/ceph-1': cluster(spec),
    disks: {
      items: [
        {
          kind: 'Disk',
          meta: { id: 'disk-1', name: 'a' },
          spec: { use: 'ceph' },
          status: { osd: 1, deviceClass: 'ssd', encrypted: true },
        },
        { kind: 'Disk', meta: { id: 'disk-2', name: 'b' }, spec: { use: 'ceph' }, status: { osd: 2 } },
      ],
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Ceph />
      <Disks />
    </QueryClientProvider>,
  );
  return asked;
}

test('disks show whether they are encrypted, and new ones will be when that is turned on', async () => {
  const asked = show({});
  await screen.findByText('Ceph (osd.1, ssd, encrypted)');
  expect(screen.getByText('Ceph (osd.2, not encrypted)')).toBeVisible();
  await userEvent.click(await screen.findByRole('button', { name: 'Edit Ceph' }));
  const box = screen.getByRole('checkbox', { name: 'Encrypt new disks' });
  expect(box).not.toBeChecked();
  await userEvent.click(box);
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).not.toEqual([]));
  expect(asked).toMatchObject([{ method: 'PATCH', path: 'ceph-clusters/ceph-1' }]);
  expect(asked[0]?.body).toHaveProperty('spec', { encryptDisks: true });
});

test('another change keeps the encryption of new disks', async () => {
  const asked = show({ encryptDisks: true });
  await userEvent.click(await screen.findByRole('button', { name: 'Edit Ceph' }));
  expect(screen.getByRole('checkbox', { name: 'Encrypt new disks' })).toBeChecked();
  await userEvent.clear(screen.getByLabelText(/^Replicas/));
  await userEvent.type(screen.getByLabelText(/^Replicas/), '3');
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).not.toEqual([]));
  expect(asked[0]?.body).toHaveProperty('spec', { replicas: 3 });
});

test('the encryption of new disks is turned off', async () => {
  const asked = show({ encryptDisks: true });
  await userEvent.click(await screen.findByRole('button', { name: 'Edit Ceph' }));
  await userEvent.click(screen.getByRole('checkbox', { name: 'Encrypt new disks' }));
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).not.toEqual([]));
  expect(asked[0]?.body).toHaveProperty('spec', { encryptDisks: null });
});
