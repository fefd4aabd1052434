// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Instance } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { Media } from './media';

afterEach(cleanup);

const image = (id: string, format: string) => ({
  kind: 'Image',
  meta: { id: `img-${id}`, name: id, project: 'prj-1' },
  spec: { format },
});

function show(spec: Partial<Instance['spec']>, role = 'member') {
  const instance: Instance = {
    kind: 'Instance',
    meta: { id: 'ins-1', name: 'web-1', project: 'prj-1', revision: 4 },
    spec: { flavor: 'flv-1', ...spec },
  };
  const asked = answering({
    images: { items: [image('debian', 'qcow2'), image('windows', 'iso'), image('virtio-win', 'iso')] },
    'instances/ins-1': instance,
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Media session={{ role, organization: 'org-1' } as Session} instance={instance} />
    </QueryClientProvider>,
  );
  return asked;
}

test('a medium is ejected, and the other drive keeps its own', async () => {
  const asked = show({ media: ['img-windows', 'img-virtio-win'] });
  expect(await screen.findByText('virtio-win')).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Eject: Drive 1' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toEqual({ spec: { media: ['', 'img-virtio-win'] } });
});

test('a medium is inserted into the second drive; a disk image is not offered', async () => {
  const asked = show({ media: ['img-windows'] });
  await screen.findByText('windows');
  await userEvent.click(screen.getByRole('button', { name: 'Insert: Drive 2' }));
  const field = await screen.findByLabelText('Installation medium');
  expect(screen.queryByRole('option', { name: 'debian' })).toBeNull();
  await userEvent.selectOptions(field, 'virtio-win');
  expect(screen.getByText(/--cdrom windows --cdrom virtio-win/)).toBeInTheDocument();
  await userEvent.click(screen.getByRole('button', { name: 'Insert' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toEqual({ spec: { media: ['img-windows', 'img-virtio-win'] } });
});

test('an instance without drives says when a medium takes effect', async () => {
  show({ image: 'img-debian' });
  expect(await screen.findByText(/takes effect with its next start/)).toBeVisible();
  expect(screen.queryByRole('button', { name: /Eject/ })).toBeNull();
});

test('a viewer sees the media only', async () => {
  show({ media: ['img-windows'] }, 'viewer');
  expect(await screen.findByText('windows')).toBeVisible();
  expect(screen.queryByRole('button')).toBeNull();
});
