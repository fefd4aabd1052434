// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import { Webhooks } from './webhooks';

afterEach(cleanup);

test('webhooks are deleted after a confirmation', async () => {
  const hook = (id: string) => ({
    kind: 'Webhook',
    meta: { id, name: id, revision: 1 },
    spec: { url: `https://${id}.example` },
  });
  const asked = answering({ webhooks: { items: [hook('old'), hook('new')], revision: 1 } });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Webhooks id="" />
    </QueryClientProvider>,
  );
  const row = (await screen.findByText('https://old.example')).closest('tr')!;
  await userEvent.click(within(row).getByRole('checkbox'));
  await userEvent.click(within(screen.getByRole('toolbar')).getByRole('button', { name: 'Delete' }));
  const dialog = await screen.findByRole('dialog');
  await userEvent.type(within(dialog).getByRole('textbox'), 'old');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Delete' }));
  await waitFor(() => expect(asked).toEqual([{ method: 'DELETE', path: 'webhooks/old', body: undefined }]));
});

test('why a delivery failed is shown in the reader’s words', async () => {
  const status = { attempts: 2, lastError: 'receiver responded with status 503' };
  const cause = { code: 'receiver-status', count: 503, plain: true };
  const hook = { kind: 'Webhook', meta: { id: 'w', name: 'w', revision: 1 }, spec: { url: 'https://w.example' } };
  const event = { id: 'e', type: 'instance.failed', timestamp: '2026-03-01T00:00:00Z' };
  const items = [{ event, state: 'Retrying', ...status, cause }];
  answering({ 'webhooks/w': { ...hook, status: { ...status, cause } }, 'webhooks/w/deliveries': { items } });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Webhooks id="w" />
    </QueryClientProvider>,
  );
  await screen.findByText('instance.failed');
  expect(screen.getAllByText('The receiver responded with status 503.')).toHaveLength(2);
  expect(screen.queryByText(/^receiver responded/)).toBeNull();
});
