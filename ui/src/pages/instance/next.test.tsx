// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Instance } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { Next } from './next';

afterEach(cleanup);

const running = (spec: Partial<Instance['spec']>): Instance => ({
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'demo', project: 'prj-1' },
  spec: { flavor: 'tiny', image: 'img-1', ...spec },
  assignment: {
    node: 'node-1',
    epoch: 1,
    ports: [{ network: 'net-1', mac: '02:00:00:00:00:01', address4: '10.0.0.5' }],
  },
  status: { phase: 'Running', node: 'node-1', epoch: 1 },
});

function show(instance: Instance, image: string, ips: object[] = []) {
  answering({ images: { items: [{ meta: { id: 'img-1', name: image }, spec: {} }] }, 'floating-ips': { items: ips } });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Next instance={instance} />
    </QueryClientProvider>,
  );
}

test('with a key it is SSH, and nothing is said of a password', async () => {
  show(running({ sshKeys: ['ssh-ed25519 A'] }), 'debian-13', [
    { spec: { instance: 'ins-1' }, assignment: { address: '192.0.2.9' } },
  ]);
  expect(await screen.findByText('ssh debian@192.0.2.9')).toBeVisible();
  expect(screen.queryByText(/password/)).toBeNull();
  expect(screen.queryByText(/attach a floating IP/)).toBeNull();
  expect(screen.getByRole('link', { name: 'Open the console' })).toBeVisible();
});

test('without a floating IP it is said from where it can be reached', async () => {
  show(running({ sshKeys: ['ssh-ed25519 A'] }), 'our-image');
  expect(await screen.findByText('ssh USER@10.0.0.5')).toBeVisible();
  expect(screen.getByText(/attach a floating IP/)).toBeVisible();
});

test('without a key it is the password on the console, and no SSH', async () => {
  show(running({}), 'ubuntu-24.04');
  expect(await screen.findByText(/Sign in on the console as ubuntu with the password you set/)).toBeVisible();
  expect(screen.queryByText(/ssh /)).toBeNull();
});

test('the user of an image that is not known has no name', async () => {
  show(running({}), 'our-image');
  await waitFor(() => expect(screen.getByText(/as the image’s default user with the password you set/)).toBeVisible());
});

const gpu = (reason: string, status = false, message = ''): Instance => {
  const i = running({ vgpu: { vramBytes: 1 << 30 } });
  i.status = {
    ...i.status,
    guestTools: '1.2.3',
    conditions: [{ type: 'GPUReady', status, reason, message }] as NonNullable<Instance['status']>['conditions'],
  };
  return i;
};

test('guest tools alone do not make a GPU ready', async () => {
  show(gpu('kernel-without-driver'), 'debian-13');
  expect(await screen.findByText(/built without a driver/)).toBeVisible();
  expect(screen.queryByText(/The GPU is ready/)).toBeNull();
  expect(screen.queryByText('nvidia-smi')).toBeNull();
});

test('before its node has said anything it is not ready', async () => {
  const i = gpu('starting');
  i.status = { ...i.status, conditions: [] };
  show(i, 'debian-13');
  expect(await screen.findByText(/The GPU is not ready yet/)).toBeVisible();
});

test('what its node has seen makes it ready', async () => {
  show(gpu('ready', true), 'debian-13');
  expect(await screen.findByText(/The GPU is ready\. Try it/)).toBeVisible();
  expect(screen.getByText('nvidia-smi')).toBeVisible();
});

test('a refusal is told as the node tells it', async () => {
  show(gpu('library-failed', false, 'the node refused the guest’s library: no room'), 'debian-13');
  expect(await screen.findByText(/no room/)).toBeVisible();
});

test('what its app serves opens in a tab of its own, which has no hold of the portal', async () => {
  const tab = { opener: window, location: { replace: vi.fn() }, close: vi.fn() };
  const opened = vi.spyOn(window, 'open').mockReturnValue(tab as unknown as Window);
  answering({
    images: { items: [] },
    'floating-ips': { items: [] },
    'instances/ins-1/connection': {
      user: 'debian',
      addresses: [],
      appDomain: 'apps.example.com',
      apps: [{ port: 8888, name: 'JupyterLab', address: 'https://8888-1.apps.example.com/' }],
    },
    'instances/ins-1/app-links': {
      url: 'https://8888-1.apps.example.com/.basalt/enter#pass',
      expiresAt: '2026-03-01T12:00:00Z',
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Next instance={running({})} />
    </QueryClientProvider>,
  );
  await userEvent.click(await screen.findByRole('button', { name: 'Open JupyterLab' }));
  await waitFor(() =>
    expect(tab.location.replace).toHaveBeenCalledWith('https://8888-1.apps.example.com/.basalt/enter#pass'),
  );
  expect(opened).toHaveBeenCalledWith('', '_blank');
  expect(tab.opener).toBeNull();
});

test('without a domain for apps the command that forwards one is shown, with its address', async () => {
  answering({
    images: { items: [] },
    'floating-ips': { items: [] },
    'instances/ins-1/connection': {
      user: '',
      addresses: [],
      target: 'web/demo',
      gateway: { host: 'gw.example.com', port: 2222, fingerprint: 'SHA256:x' },
      apps: [{ port: 80, name: 'Site', address: 'http://80-1.localhost:8080/' }],
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Next instance={running({})} />
    </QueryClientProvider>,
  );
  expect(await screen.findByText('ssh -p 2222 -N -L 8080:ins-1:80 web/demo@gw.example.com')).toBeVisible();
  expect(screen.getByRole('link', { name: 'http://80-1.localhost:8080/' })).toBeVisible();
  expect(screen.queryByRole('button', { name: 'Open Site' })).toBeNull();
});

test('what it costs is said, with what it has cost this month', async () => {
  answering({
    images: { items: [] },
    'floating-ips': { items: [] },
    'instances/ins-1/cost': {
      currency: 'EUR',
      reservedMicros: 400_000,
      fullUseMicros: 900_000,
      spentMicros: 12_340_000,
      from: '2026-03-01T00:00:00Z',
      until: '2026-03-09T00:00:00Z',
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Next instance={running({})} />
    </QueryClientProvider>,
  );
  expect(await screen.findByText(/It costs €0.40 \/ h while it runs, and up to €0.90 \/ h/)).toHaveTextContent(
    'This month so far: €12.34.',
  );
});

test('with the SSH gateway a shell in the browser is offered, and no password is spoken of', async () => {
  answering({
    images: { items: [{ meta: { id: 'img-1', name: 'debian-13' }, spec: {} }] },
    'instances/ins-1/connection': {
      user: 'debian',
      target: 'web/demo',
      gateway: { host: 'gw.example.com', port: 22, fingerprint: 'SHA256:x' },
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Next instance={running({})} />
    </QueryClientProvider>,
  );
  expect(await screen.findByText('ssh web/demo@gw.example.com')).toBeVisible();
  expect(screen.getByRole('link', { name: 'Open a shell in the browser' })).toBeVisible();
  expect(screen.queryByText(/password/)).toBeNull();
});
