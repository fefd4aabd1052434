// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { SellerCards } from './seller';

afterEach(cleanup);

const session = { name: 'sales@nova.example', role: 'reseller', revision: 1 } as unknown as Session;
const sum = { currency: 'EUR', netMicros: 900e6, taxMicros: 0, creditedMicros: 0, paidMicros: 0, invoices: 3 };

const show = (wholesaleMicros: number) => {
  answering({
    revenue: { items: [], totals: [{ ...sum, wholesaleMicros }] },
    organizations: {
      items: [
        {
          kind: 'Organization',
          meta: { id: 'org-1', name: 'late' },
          spec: {},
          status: { billing: { state: 'warn', message: 'invoice INV-000001 is overdue' } },
        },
        { kind: 'Organization', meta: { id: 'org-2', name: 'punctual' }, spec: {} },
      ],
    },
    wallet: { balanceMicros: -120_500_000, unbilledMicros: 0, currency: 'EUR' },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <SellerCards session={session} />
    </QueryClientProvider>,
  );
};

test('a reseller sees its margin, and what is due from customers in arrears', async () => {
  show(600e6);
  expect(await screen.findByText('€300.00 margin after €600.00 wholesale')).toBeVisible();
  expect(await screen.findByText('€120.50 due')).toBeVisible();
  expect(screen.getByText('invoice INV-000001 is overdue')).toBeVisible();
  expect(screen.queryByText('punctual')).toBeNull();
});

test('a seller without wholesale costs sees no margin', async () => {
  show(0);
  expect(await screen.findByText('€900.00')).toBeVisible();
  expect(screen.queryByText(/margin/)).toBeNull();
});
