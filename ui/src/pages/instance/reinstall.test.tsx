// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Instance, Schemas } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { Reinstall, restorable } from './reinstall';

afterEach(cleanup);

const instance: Instance = {
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'web-1', project: 'prj-1' },
  spec: { flavor: 'flv-1', image: 'img-1', power: 'Stopped' },
};
const backup = (name: string, volume: string, phase: 'Succeeded' | 'Failed', day: number): Schemas['Backup'] => ({
  kind: 'Backup',
  meta: { id: `bkp-${name}`, name, createdAt: `2026-01-0${day}T00:00:00Z` },
  spec: { volume, target: 'tgt-1' },
  status: { phase },
});
const volume = (id: string, root: boolean): Schemas['Volume'] => ({
  kind: 'Volume',
  meta: { id, name: id },
  spec: { sizeBytes: 1, root },
});
const volumes = [volume('vol-root', true), volume('vol-data', false)];
const backups = [
  backup('first', 'vol-root', 'Succeeded', 1),
  backup('second', 'vol-root', 'Succeeded', 2),
  backup('broken', 'vol-root', 'Failed', 3),
  backup('data', 'vol-data', 'Succeeded', 4),
  backup('of-deleted', 'vol-gone', 'Succeeded', 5),
];
const image = (id: string, name: string) => ({ kind: 'Image', meta: { id, name }, spec: { public: true } });

function show(i: Instance = instance) {
  const closed = vi.fn();
  const asked = answering({
    images: { items: [image('img-1', 'debian'), image('img-2', 'ubuntu')] },
    backups: { items: backups },
    volumes: { items: volumes },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Reinstall instance={i} onClose={closed} />
    </QueryClientProvider>,
  );
  return { asked, closed };
}

const from = () => screen.getByLabelText('Install from');
const send = () => screen.getByRole('button', { name: 'Reinstall' });

test('root disks are restored from backups of root volumes that have succeeded, the newest first', () => {
  expect(restorable(backups, volumes).map((b) => b.meta.name)).toEqual(['of-deleted', 'second', 'first']);
});

test('it is reinstalled from its image only after its name was typed', async () => {
  const { asked, closed } = show();
  expect(await screen.findByRole('option', { name: 'The instance’s image (debian)' })).toBeVisible();
  expect(send()).toBeDisabled();
  await userEvent.type(screen.getByLabelText('Type web-1 to confirm'), 'web-1');
  await userEvent.click(send());
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked).toEqual([{ method: 'POST', path: 'instances/ins-1/reinstall', body: {} }]);
});

test('a backup is restored, and the command says so', async () => {
  const { asked, closed } = show();
  await screen.findByRole('option', { name: /^second/ });
  await userEvent.selectOptions(from(), 'backup:bkp-second');
  expect(screen.getByText(/restored from the backup/)).toBeVisible();
  expect(screen.getByText(/basalt instance reinstall web-1.*--backup second/s)).toBeInTheDocument();
  await userEvent.type(screen.getByLabelText('Type web-1 to confirm'), 'web-1');
  await userEvent.click(send());
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]?.body).toEqual({ backup: 'bkp-second' });
});

test('another image is offered, but not for an app, which has its own', async () => {
  show();
  expect(await screen.findByRole('option', { name: 'ubuntu' })).toBeInTheDocument();
  cleanup();
  show({ ...instance, spec: { ...instance.spec, app: 'app-1' } });
  await screen.findByRole('option', { name: /^second/ });
  expect(within(from()).queryByRole('option', { name: 'ubuntu' })).toBeNull();
});
