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
