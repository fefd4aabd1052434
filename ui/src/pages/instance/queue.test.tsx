// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Instance } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { Queue } from './queue';

afterEach(cleanup);

const waiting: Instance = {
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'demo', project: 'prj-1' },
  spec: { flavor: 'tiny', image: 'img-1' },
  assignment: { queuedAt: '2026-11-29T10:00:00Z' },
};

function show(instance: Instance, queue?: object) {
  const asked = answering({ 'instances/ins-1': { ...instance, queue } });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Queue instance={instance} />
    </QueryClientProvider>,
  );
  return asked;
}

test('it shows the position, and an unknown time as unknown', async () => {
  show(waiting, { position: 2, length: 5, since: '2026-11-29T10:00:00Z', samples: 1 });
  expect(await screen.findByText('Position 2 of 5')).toBeVisible();
  expect(screen.getByText('Unknown')).toBeVisible();
  expect(screen.getByText(/too few similar instances/)).toBeVisible();
});

test('it shows what the estimate is based on', async () => {
  const expectedAt = new Date(Date.now() + 8 * 60_000).toISOString();
  show(waiting, { position: 1, length: 1, samples: 30, usualSeconds: 10_800, expectedAt });
  expect(await screen.findByText(/Similar instances waited 3 hours \(median of 20\)/)).toBeVisible();
  expect(screen.queryByText('Unknown')).toBeNull();
  expect(screen.queryByText(/has waited longer/)).toBeNull();
});

test('an instance that has a node shows nothing', () => {
  show({
    ...waiting,
    assignment: { node: 'node-1', queuedAt: '2026-11-29T10:00:00Z', placedAt: '2026-11-29T11:00:00Z' },
  });
  expect(screen.queryByText('In the queue')).toBeNull();
});

test('a stopped instance that waits for another size can keep the present one', async () => {
  const resizing: Instance = {
    ...waiting,
    meta: { ...waiting.meta, revision: 4 },
    assignment: { node: 'node-1', queuedAt: '2026-11-29T10:00:00Z', size: { flavor: 'small' } },
    status: { phase: 'Stopped' },
  };
  const asked = show(resizing, { position: 2, length: 5, since: '2026-11-29T10:00:00Z', samples: 1 });
  expect(await screen.findByText('New size: in the queue')).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Keep the present size' }));
  await waitFor(() => expect(asked.map((a) => a.body)).toEqual([{ spec: { flavor: 'small' } }]));
});

test('a running instance has no place in the queue', () => {
  show({ ...waiting, assignment: { node: 'node-1', queuedAt: '2026-11-29T10:00:00Z' }, status: { phase: 'Running' } });
  expect(screen.queryByText('New size: in the queue')).toBeNull();
});
