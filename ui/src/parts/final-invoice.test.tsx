// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { newQueryClient } from '../api/session';
import { FinalInvoice } from './final-invoice';

afterEach(() => cleanup());

/** stand replaces the API, and records what is requested. */
function stand(status: number, answer: object) {
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    const url = new URL(r.url);
    asked.push(`${url.pathname.replace(/.*\/v1/, '')}${url.search} ${JSON.stringify(await r.json())}`);
    return new Response(JSON.stringify(answer), { status, headers: { 'Content-Type': 'application/json' } });
  });
  return asked;
}

const invoice = {
  kind: 'Invoice',
  meta: { id: 'inv-000000000007', name: 'inv-000007' },
  spec: {
    number: 'INV-000007',
    from: '2026-10-01T00:00:00Z',
    to: '2026-10-20T15:00:00Z',
    currency: 'EUR',
    totalMicros: 12_500_000,
  },
};

async function open() {
  render(
    <QueryClientProvider client={newQueryClient()}>
      <FinalInvoice organization="org-1" />
    </QueryClientProvider>,
  );
  await userEvent.click(screen.getByRole('button', { name: 'Issue final invoice' }));
  return within(screen.getByRole('dialog'));
}

test('the amount is shown before anything is issued', async () => {
  const asked = stand(200, { organization: 'org-1', currency: 'EUR', totalMicros: 12_500_000, invoices: [invoice] });
  const dialog = await open();
  expect(await dialog.findByText(/12\.50/)).toBeVisible();
  expect(asked).toEqual(['/final-invoices?dryRun=all {"organization":"org-1"}']);
  await userEvent.click(dialog.getByRole('button', { name: 'Issue final invoice' }));
  expect(await screen.findByRole('link', { name: 'INV-000007' })).toBeVisible();
  expect(screen.queryByRole('dialog')).toBeNull();
  expect(asked.slice(1)).toEqual(['/final-invoices {"organization":"org-1"}']);
});

test('without an amount, nothing can be issued', async () => {
  stand(409, { code: 'wrong_state', detail: 'organization acme has nothing to invoice' });
  const dialog = await open();
  expect(await dialog.findByText(/nothing to invoice/)).toBeVisible();
  expect(dialog.getByRole('button', { name: 'Issue final invoice' })).toBeDisabled();
});
