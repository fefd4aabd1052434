// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { answering } from '../../api/fake';
import { newQueryClient, sessionKey, type Session } from '../../api/session';
import { ProjectProvider } from '../../parts/project';
import { CreateVolume } from './create-volume';

afterEach(cleanup);

function show(role: Session['role']) {
  const asked = answering({
    projects: { items: [{ kind: 'Project', meta: { id: 'prj-1', name: 'web' }, spec: {} }] },
    disks: {
      items: [
        {
          kind: 'Disk',
          meta: { id: 'disk-1', name: 'a' },
          spec: { use: 'local', pool: 'fast' },
          status: { node: 'n-1' },
        },
        { kind: 'Disk', meta: { id: 'disk-2', name: 'b' }, spec: { use: 'ceph' }, status: { node: 'n-1' } },
      ],
    },
    nodes: { items: [{ kind: 'Node', meta: { id: 'n-1', name: 'alpha' }, spec: {} }] },
  });
  const closed = vi.fn();
  const session = { role, organization: 'org-1' } as Session;
  const client = newQueryClient();
  client.setQueryData(sessionKey, session);
  render(
    <QueryClientProvider client={client}>
      <ProjectProvider session={session}>
        <CreateVolume project="prj-1" onClose={closed} />
      </ProjectProvider>
    </QueryClientProvider>,
  );
  return {
    create: async () => {
      await userEvent.type(screen.getByLabelText(/^Name( \*)?$/), 'data');
      await userEvent.click(screen.getByRole('button', { name: 'Create' }));
    },
    asked,
    closed,
  };
}

test('an operator chooses a pool on disks, and sees its nodes', async () => {
  const { asked, closed, create } = show('operator');
  await screen.findByRole('option', { name: 'fast (alpha)' });
  await userEvent.selectOptions(screen.getByLabelText('Storage pool'), 'fast');
  expect(screen.queryByRole('option', { name: 'A pool on disks…' })).toBeNull();
  await create();
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]).toMatchObject({ path: 'volumes', body: { meta: { name: 'data' }, spec: { pool: 'fast' } } });
});

test('a tenant, who cannot list disks, enters the name of a pool', async () => {
  const { asked, closed, create } = show('member');
  await userEvent.selectOptions(screen.getByLabelText('Storage pool'), 'A pool on disks…');
  expect(screen.queryByRole('option', { name: /alpha/ })).toBeNull();
  await create();
  expect(screen.getByLabelText(/^Name of the pool/)).toBeInvalid();
  expect(asked).toEqual([]);
  await userEvent.type(screen.getByLabelText(/^Name of the pool/), 'fast');
  await userEvent.click(screen.getByRole('button', { name: 'Create' }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]).toMatchObject({ path: 'volumes', body: { spec: { pool: 'fast' } } });
});

test('a usual pool is chosen again after another', async () => {
  const { asked, closed, create } = show('member');
  const pool = screen.getByLabelText('Storage pool');
  await userEvent.selectOptions(pool, 'A pool on disks…');
  await userEvent.selectOptions(pool, 'shared');
  expect(screen.queryByLabelText(/^Name of the pool/)).toBeNull();
  await create();
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]).toMatchObject({ body: { spec: { pool: 'shared' } } });
});
