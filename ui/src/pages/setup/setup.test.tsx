// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { Setup } from './setup';

beforeEach(() => localStorage.clear());
afterEach(cleanup);

const session = {
  name: 'ann@example.com',
  role: 'operator',
  revision: 1,
  hasPassword: true,
  totp: false,
} as unknown as Session;

const show = (id: string, of = session) =>
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Setup session={of} id={id} />
    </QueryClientProvider>,
  );

test('two-factor authentication is set up in the wizard', async () => {
  const asked = answering({ branding: {}, totp: { secret: 'ABC', uri: 'otpauth://totp/x?secret=ABC' } });
  show('you');
  await userEvent.click(await screen.findByRole('button', { name: 'Set up' }));
  expect(await screen.findByLabelText(/^Code/)).toBeVisible();
  expect(asked).toEqual([{ method: 'POST', path: 'totp', body: undefined }]);
  expect(screen.queryByText(/basalt totp/)).toBeNull();
});

test('whose password an identity provider has is told so', async () => {
  answering({ branding: {} });
  show('you', { ...session, hasPassword: false });
  expect(await screen.findByText(/identity provider/)).toBeVisible();
  expect(screen.queryByLabelText(/Current password/)).toBeNull();
});

test('a pool without a limit is unlimited', async () => {
  const pool = (name: string, maxVgpusPerGpu?: number) => ({
    kind: 'GPUPool',
    meta: { id: name, name },
    spec: { maxVgpusPerGpu },
  });
  answering({ branding: {}, 'gpu-pools': { items: [pool('free'), pool('four', 4)] } });
  show('sizes');
  const row = async (name: string) => within((await screen.findByText(name)).closest('tr')!);
  expect((await row('free')).getByText('Unlimited')).toBeVisible();
  expect((await row('four')).getByText('4')).toBeVisible();
});

test('the wizard has steps for nodes, network, address and a machine with a GPU', async () => {
  const ready = { phase: 'Running', conditions: [{ type: 'GPUReady', status: true }] };
  answering({
    branding: {},
    nodes: {
      items: [
        {
          kind: 'Node',
          meta: { id: 'node-1', name: 'n1' },
          spec: {},
          assignment: { state: 'Ready' },
          status: { storageBytes: 2 ** 40, storageFreeBytes: 2 ** 39 },
        },
      ],
    },
    mail: { portalURL: 'https://portal.example' },
    instances: {
      items: [{ kind: 'Instance', meta: { id: 'ins-1', name: 'first' }, spec: { vgpu: {} }, status: ready }],
    },
  });
  show('nodes');
  expect(await screen.findByRole('link', { name: 'n1' })).toHaveAttribute('href', '/nodes/node-1');
  expect(screen.getByText('512 GiB of 1 TiB free')).toBeVisible();
  expect(screen.getByRole('link', { name: 'Add node' })).toBeVisible();
  cleanup();
  show('network');
  await userEvent.click(await screen.findByRole('button', { name: 'Add external network' }));
  expect(await screen.findByRole('dialog')).toBeVisible();
  cleanup();
  show('address');
  expect(await screen.findByText('https://portal.example')).toBeVisible();
  cleanup();
  show('machine');
  expect(await screen.findByRole('link', { name: 'first' })).toBeVisible();
  expect(screen.getByText('Done')).toBeVisible();
});
