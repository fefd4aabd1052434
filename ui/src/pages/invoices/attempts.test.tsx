// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { newQueryClient } from '../../api/session';
import { Attempts } from './attempts';

afterEach(cleanup);

test('the payments by card that were tried are shown for an invoice', async () => {
  const failed = {
    kind: 'Checkout',
    meta: { id: 'chk-1', name: 'chk-1', createdAt: '2026-03-01T00:00:00Z' },
    spec: { amountMicros: 1.5e6, currency: 'EUR', invoice: 'inv-000000000001', autoPay: true },
    status: { state: 'Failed', lastError: 'Your card was declined.', cause: { code: 'card-funds', plain: true } },
  };
  const asked: URL[] = [];
  vi.stubGlobal('fetch', (r: Request) => {
    asked.push(new URL(r.url));
    return Promise.resolve(Response.json({ revision: 1, items: [failed] }));
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Attempts invoice="inv-000000000001" organization="org-000000000001" />
    </QueryClientProvider>,
  );
  expect(await screen.findByRole('listitem')).toHaveTextContent(
    /€1.50 \(Automatic payment\): Failed, nothing was charged The payment card does not have sufficient funds./,
  );
  expect(asked[0]?.pathname).toMatch(/\/v1\/checkouts$/);
  expect(asked[0]?.searchParams.get('fieldSelector')).toBe('spec.invoice=inv-000000000001');
});
