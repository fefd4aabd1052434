// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../api/client';
import { newQueryClient } from '../api/session';
import { AddFunds, PayInvoice } from './pay';

afterEach(() => cleanup());

const wallet: Schemas['Wallet'] = {
  organization: 'org-000000000001',
  currency: 'EUR',
  balanceMicros: 0,
  unbilledMicros: 0,
  state: 'ok',
  cards: { minMicros: 5e6, maxMicros: 500e6 },
  open: [{ invoice: 'inv-000000000001', number: 'INV-000001', dueAt: '2026-03-01T00:00:00Z', leftMicros: 1.5e6 }],
};

/** stand replaces the API by one that returns one response, and records the requests. */
function stand(status: number, answer: object) {
  const sent: unknown[] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    if (r.method === 'POST') sent.push(await r.json());
    return new Response(JSON.stringify(answer), { status, headers: { 'Content-Type': 'application/json' } });
  });
  return sent;
}

const show = (what: React.ReactNode) =>
  render(<QueryClientProvider client={newQueryClient()}>{what}</QueryClientProvider>);

const page = (url: string) => ({ kind: 'Checkout', meta: { name: 'chk-1' }, spec: {}, status: { state: 'Open', url } });

async function pay(amount: string) {
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Add funds' }));
  await user.type(screen.getByLabelText(/Amount/), amount);
  await user.click(screen.getByRole('button', { name: 'Continue to payment' }));
}

test('an amount leads to the page of the payment provider', async () => {
  const sent = stand(201, page('https://checkout.stripe.com/c/1'));
  const to = vi.fn();
  show(<AddFunds wallet={wallet} to={to} />);
  await pay('12,50');
  await vi.waitFor(() => expect(to).toHaveBeenCalledExactlyOnceWith('https://checkout.stripe.com/c/1'));
  expect(sent).toMatchObject([{ meta: { organization: 'org-000000000001' }, spec: { amountMicros: 12_500_000 } }]);
});

test('what is wrong stands at the amount', async () => {
  stand(400, { code: 'invalid', detail: 'must be between 5 and 500', field: 'spec.amountMicros' });
  const to = vi.fn();
  show(<AddFunds wallet={wallet} to={to} />);
  await pay('1');
  expect(await screen.findByText(/must be between/)).toBeVisible();
  expect(to).not.toHaveBeenCalled();
});

test('an open invoice is paid at once', async () => {
  const sent = stand(201, page('https://checkout.stripe.com/c/2'));
  const to = vi.fn();
  show(<PayInvoice wallet={wallet} invoice="inv-000000000001" to={to} />);
  await userEvent.setup().click(screen.getByRole('button', { name: 'Pay invoice INV-000001 now' }));
  await vi.waitFor(() => expect(to).toHaveBeenCalledExactlyOnceWith('https://checkout.stripe.com/c/2'));
  expect(sent).toMatchObject([{ spec: { invoice: 'inv-000000000001' } }]);
});

test('an address that is none of a page leads nowhere', async () => {
  stand(201, page('javascript:alert(1)'));
  const to = vi.fn();
  show(<PayInvoice wallet={wallet} invoice="inv-000000000001" to={to} />);
  const button = screen.getByRole('button');
  await userEvent.setup().click(button);
  await vi.waitFor(() => expect(button).toBeDisabled());
  expect(to).not.toHaveBeenCalled();
});

test('who cannot pay by card, and what is paid, has no button', () => {
  stand(500, {});
  show(
    <>
      <AddFunds wallet={{ ...wallet, cards: undefined }} />
      <PayInvoice wallet={{ ...wallet, cards: undefined }} invoice="inv-000000000001" />
      <PayInvoice wallet={wallet} invoice="inv-000000000002" />
    </>,
  );
  expect(screen.queryByRole('button')).toBeNull();
});
