// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../api/client';
import { newQueryClient } from '../api/session';
import { PayInvoice } from './pay';
import { PaymentMethods } from './payment-cards';

const organization = 'org-000000000001';

const wallet: Schemas['Wallet'] = {
  organization,
  currency: 'EUR',
  balanceMicros: 0,
  unbilledMicros: 0,
  state: 'ok',
  topUp: true,
  cards: { minMicros: 5e6, maxMicros: 500e6 },
  open: [{ invoice: 'inv-000000000001', number: 'INV-000001', dueAt: '2026-03-01T00:00:00Z', leftMicros: 1.5e6 }],
};

const card = (id: string, lastDigits: string, isDefault: boolean): Schemas['Card'] => ({
  kind: 'Card',
  meta: { id, name: id, organization },
  spec: {},
  status: { state: 'Saved', brand: 'visa', lastDigits, expiryMonth: 4, expiryYear: 2031, default: isDefault },
});

interface Sent {
  method: string;
  path: string;
  body: unknown;
}

/** answers are the responses of the API, by method and path; sent are the requests that change something. */
let answers: Record<string, object>;
let sent: Sent[];

beforeEach(() => {
  answers = {
    'GET /v1/wallet': wallet,
    'GET /v1/cards': { items: [card('card-1', '4242', true), card('card-2', '1881', false)], revision: 1 },
    'GET /v1/auto-pay': { organization, revision: 0, enabled: false, status: { state: 'Off' } },
    'GET /v1/top-up': { organization, revision: 0, enabled: false, currency: 'EUR', status: { state: 'Off' } },
  };
  sent = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    const path = new URL(r.url, 'http://localhost').pathname.replace(/^\/portal/, '');
    const text = await r.text();
    if (r.method !== 'GET') sent.push({ method: r.method, path, body: text ? JSON.parse(text) : undefined });
    const answer = answers[`${r.method} ${path}`];
    return new Response(JSON.stringify(answer ?? { code: 'notFound', detail: path }), {
      status: answer ? 200 : 404,
      headers: { 'Content-Type': 'application/json' },
    });
  });
});

afterEach(() => cleanup());

const show = (what: React.ReactNode) =>
  render(<QueryClientProvider client={newQueryClient()}>{what}</QueryClientProvider>);

test('a card is added on the page of the payment provider', async () => {
  answers['POST /v1/cards'] = {
    kind: 'Card',
    meta: { name: 'card-3' },
    spec: {},
    status: { url: 'https://checkout.stripe.com/c/3' },
  };
  const to = vi.fn();
  show(<PaymentMethods organization={organization} to={to} />);
  await userEvent.setup().click(await screen.findByRole('button', { name: 'Add payment card' }));
  await vi.waitFor(() => expect(to).toHaveBeenCalledExactlyOnceWith('https://checkout.stripe.com/c/3'));
  expect(sent).toMatchObject([{ path: '/v1/cards', body: { kind: 'Card', meta: { organization } } }]);
});

test('another card is made the default, and one is removed', async () => {
  answers['POST /v1/cards/card-2/default'] = card('card-2', '1881', true);
  answers['DELETE /v1/cards/card-1'] = card('card-1', '4242', false);
  const user = userEvent.setup();
  show(<PaymentMethods organization={organization} />);
  expect(await screen.findByText(/Visa ending 4242/)).toHaveTextContent('expires 04/2031 Default');
  await user.click(screen.getByRole('button', { name: 'Set the payment card ending 1881 as default' }));
  await vi.waitFor(() => expect(sent).toMatchObject([{ method: 'POST', path: '/v1/cards/card-2/default' }]));
  await user.click(screen.getByRole('button', { name: 'Remove the payment card ending 4242' }));
  expect(sent).toHaveLength(1);
  await user.click(screen.getByRole('button', { name: 'Remove' }));
  await vi.waitFor(() => expect(sent[1]).toMatchObject({ method: 'DELETE', path: '/v1/cards/card-1' }));
});

test('the automatic top-up is set up', async () => {
  answers['PATCH /v1/top-up'] = {
    ...answers['GET /v1/top-up'],
    revision: 7,
    enabled: true,
    belowMicros: 10e6,
    amountMicros: 50e6,
    monthlyLimitMicros: 200e6,
    status: { state: 'Ready' },
  };
  const user = userEvent.setup();
  show(<PaymentMethods organization={organization} />);
  await user.click(await screen.findByRole('button', { name: 'Set up top-up' }));
  await user.type(screen.getByLabelText(/When the balance is below/), '10');
  await user.type(screen.getByLabelText(/^Charge \(EUR\)/), '50');
  await user.type(screen.getByLabelText(/Monthly limit/), '200,00');
  await user.selectOptions(screen.getByLabelText('Payment card'), 'card-2');
  answers['GET /v1/top-up'] = answers['PATCH /v1/top-up'];
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({
    method: 'PATCH',
    body: {
      enabled: true,
      belowMicros: 10e6,
      amountMicros: 50e6,
      monthlyLimitMicros: 200e6,
      card: 'card-2',
    },
  });
  expect(await screen.findByText('On')).toBeVisible();
  expect(screen.getByText('€200.00')).toBeVisible();
});

test('why the top-up has stopped is shown', async () => {
  answers['GET /v1/top-up'] = {
    organization,
    revision: 7,
    enabled: true,
    status: { state: 'Stopped', lastError: 'Your card was declined.', cause: { code: 'card-expired', plain: true } },
  };
  show(<PaymentMethods organization={organization} />);
  expect(await screen.findByText('Stopped until you save it again')).toBeVisible();
  expect(screen.getByText('The payment card has expired.')).toBeVisible();
});

test('the automatic payment of invoices is set up, with the consent of the payer', async () => {
  answers['GET /v1/wallet'] = { ...wallet, topUp: false, autoPay: true };
  answers['PATCH /v1/auto-pay'] = {
    organization,
    revision: 7,
    enabled: true,
    consent: true,
    consentBy: 'anna@example.com',
    consentAt: '2026-03-01T00:00:00Z',
    status: { state: 'Ready' },
  };
  const user = userEvent.setup();
  show(<PaymentMethods organization={organization} />);
  await user.click(await screen.findByRole('button', { name: 'Set up automatic payment' }));
  await user.click(screen.getByLabelText(/^I agree that the unpaid amount of each invoice/));
  await user.selectOptions(screen.getByLabelText('Payment card'), 'card-2');
  answers['GET /v1/auto-pay'] = answers['PATCH /v1/auto-pay'];
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await vi.waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toMatchObject({ method: 'PATCH', body: { enabled: true, consent: true, card: 'card-2' } });
  expect(await screen.findByText('anna@example.com')).toBeVisible();
  expect(screen.queryByRole('heading', { name: 'Automatic top-up' })).toBeNull();
});

test('an invoice whose charge has failed leads to the page on which it is paid', async () => {
  answers['GET /v1/wallet'] = { ...wallet, topUp: false, autoPay: true };
  answers['GET /v1/auto-pay'] = {
    organization,
    revision: 7,
    enabled: true,
    status: {
      state: 'Stopped',
      invoices: [
        {
          invoice: 'inv-000000000001',
          number: 'INV-000001',
          failures: 4,
          checkout: 'chk-1',
          lastError: 'Your card was declined.',
          cause: { code: 'card-declined', plain: true },
        },
      ],
    },
  };
  show(<PaymentMethods organization={organization} />);
  expect((await screen.findByText('The payment card was declined.')).parentElement).toHaveTextContent(
    'It is not charged again until you choose another payment card or save the settings.',
  );
  expect(screen.getByRole('link', { name: 'Pay invoice INV-000001 now' })).toHaveAttribute('href', '/checkouts/chk-1');
});

test('who cannot pay by card sees no cards, and who does not pay in advance no top-up', async () => {
  answers['GET /v1/wallet'] = { ...wallet, topUp: false };
  show(<PaymentMethods organization={organization} />);
  expect(await screen.findByRole('heading', { name: 'Payment cards' })).toBeVisible();
  expect(screen.queryByRole('heading', { name: 'Automatic top-up' })).toBeNull();
  cleanup();
  let asked = 0;
  answers['GET /v1/wallet'] = { ...wallet, cards: undefined };
  const before = globalThis.fetch;
  vi.stubGlobal('fetch', async (r: Request) => (asked++, before(r)));
  const { container } = show(<PaymentMethods organization={organization} />);
  await vi.waitFor(() => expect(asked).toBe(1));
  expect(container).toBeEmptyDOMElement();
});

test('an open invoice is paid with the card on file', async () => {
  answers['POST /v1/checkouts'] = {
    kind: 'Checkout',
    meta: { id: 'chk-1', name: 'chk-1' },
    spec: {},
    status: { state: 'Paid' },
  };
  const user = userEvent.setup();
  show(<PayInvoice wallet={wallet} invoice="inv-000000000001" />);
  await user.click(
    await screen.findByRole('button', { name: 'Pay invoice INV-000001 with the payment card ending 4242' }),
  );
  expect(screen.getByText('€1.50 is charged at once.')).toBeVisible();
  expect(sent).toHaveLength(0);
  await user.click(screen.getByRole('button', { name: 'Pay now' }));
  await vi.waitFor(() => expect(location.pathname).toBe('/checkouts/chk-1'));
  expect(sent).toMatchObject([
    { path: '/v1/checkouts', body: { spec: { invoice: 'inv-000000000001', card: 'card-1' } } },
  ]);
});
