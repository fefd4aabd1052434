// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newQueryClient, type Session } from '../../api/session';
import { Attempts } from '../invoices/attempts';
import { MailSuppressionsPage } from '../mail-suppressions';
import { DisputesPage } from './disputes';
import { PaymentPage } from './payment';

const meta = (id: string) => ({ id, name: id, organization: 'org-1', createdAt: '2026-03-01T00:00:00Z', revision: 1 });
const payment = {
  kind: 'Payment',
  meta: meta('pay-1'),
  spec: {
    type: 'payment',
    currency: 'EUR',
    amountMicros: 100e6,
    reference: 'pi_1',
    receivedAt: '2026-03-01T00:00:00Z',
  },
  status: { refundedMicros: 30e6, disputedMicros: 70e6 },
};
const refund = {
  kind: 'Refund',
  meta: meta('ref-1'),
  spec: { payment: 'pay-1', currency: 'EUR', amountMicros: 30e6, reason: 'outage' },
  status: { state: 'Failed', lastError: 'the card is closed' },
};
const dispute = {
  kind: 'Dispute',
  meta: meta('dsp-1'),
  spec: { payment: 'pay-1', providerDispute: 'du_1', currency: 'EUR', amountMicros: 70e6, reason: 'fraudulent' },
  status: { state: 'NeedsResponse', withdrawnMicros: 70e6, respondBy: '2026-03-20T12:00:00Z' },
};
const suppression = {
  kind: 'MailSuppression',
  meta: meta('msup-1'),
  spec: { address: 'gone@acme.example' },
  status: { suppressedAt: '2026-03-01T00:00:00Z', lastError: '550 no such user' },
};
const checkout = {
  kind: 'Checkout',
  meta: meta('chk-1'),
  spec: { amountMicros: 100e6, currency: 'EUR', invoice: 'inv-1' },
  status: { state: 'Paid', payment: 'pay-1' },
};

const answers: Record<string, object> = {
  '/v1/payments/pay-1': payment,
  '/v1/refunds': { items: [refund], revision: 1 },
  '/v1/disputes': { items: [dispute], revision: 1 },
  '/v1/mail-suppressions': { items: [suppression], revision: 1 },
  '/v1/checkouts': { items: [checkout], revision: 1 },
  '/v1/organizations': {
    items: [{ kind: 'Organization', meta: { id: 'org-1', name: 'acme' }, spec: {} }],
    revision: 1,
  },
};

let asked: { method: string; url: URL }[];

beforeEach(() => {
  asked = [];
  localStorage.clear();
  location.hash = '';
  vi.stubGlobal('fetch', (r: Request) => {
    const url = new URL(r.url);
    asked.push({ method: r.method, url });
    const path = url.pathname.replace(/^\/portal/, '');
    if (r.method === 'DELETE') return Promise.resolve(Response.json(suppression));
    const answer = answers[path];
    return Promise.resolve(
      answer
        ? Response.json(answer)
        : Response.json({ code: 'not_found', detail: 'there is no such payment' }, { status: 404 }),
    );
  });
});
afterEach(() => cleanup());

const session = (role: Session['role'], organization = 'org-1') => ({ role, organization }) as Session;
const show = (what: React.ReactNode) =>
  render(<QueryClientProvider client={newQueryClient()}>{what}</QueryClientProvider>);

test('a payment shows its refunds and disputes, and only those', async () => {
  show(<PaymentPage session={session('billing')} id="pay-1" />);
  expect(await screen.findByText('outage')).toBeVisible();
  expect(screen.getByText('Failed, credited again')).toBeVisible();
  expect(screen.getByText('the card is closed')).toBeVisible();
  expect(await screen.findByText('fraudulent')).toBeVisible();
  expect(screen.getByText('Nothing')).toBeVisible();
  for (const path of ['/v1/refunds', '/v1/disputes'])
    expect(asked.find((a) => a.url.pathname.endsWith(path))?.url.searchParams.get('fieldSelector')).toBe(
      'spec.payment=pay-1',
    );
});

test('there is no refund for a tenant, nor when nothing is left', async () => {
  answers['/v1/payments/pay-1'] = { ...payment, status: {} };
  show(<PaymentPage session={session('admin')} id="pay-1" />);
  await screen.findByText('outage');
  expect(screen.queryByRole('button', { name: 'Refund' })).toBeNull();
  cleanup();
  show(<PaymentPage session={session('reseller', 'org-2')} id="pay-1" />);
  expect(await screen.findByRole('button', { name: 'Refund' })).toBeVisible();
  cleanup();
  answers['/v1/payments/pay-1'] = payment;
  show(<PaymentPage session={session('operator')} id="pay-1" />);
  await screen.findByText('outage');
  expect(screen.queryByRole('button', { name: 'Refund' })).toBeNull();
});

test('a payment that does not exist is told', async () => {
  show(<PaymentPage session={session('operator')} id="pay-2" />);
  expect(await screen.findByRole('heading', { level: 1, name: 'Payment not found' })).toBeVisible();
});

test('disputes show until when to respond, and whose they are', async () => {
  show(<DisputesPage />);
  expect(await screen.findByText(/^Mar 20, 2026/)).toBeVisible();
  expect(screen.getAllByText('Needs a response')).toHaveLength(2); // a state of the filter, and the row's
  expect(await screen.findByRole('link', { name: 'acme' })).toHaveAttribute('href', '/organizations/org-1/money');
  expect(screen.getByRole('link', { name: 'pay-1' })).toHaveAttribute('href', '/payments/pay-1');
});

test('the payments of an invoice tell what was returned of them', async () => {
  show(<Attempts invoice="inv-1" organization="org-1" />);
  expect(await screen.findByRole('link', { name: '€100.00 refunded or disputed' })).toHaveAttribute(
    'href',
    '/payments/pay-1',
  );
});

test('operators lift the suppression of an address, others only see it', async () => {
  const user = userEvent.setup();
  show(<MailSuppressionsPage session={session('admin')} />);
  expect(await screen.findByText('gone@acme.example')).toBeVisible();
  expect(screen.getByText('550 no such user')).toBeVisible();
  expect(screen.queryByRole('checkbox')).toBeNull();
  cleanup();
  show(<MailSuppressionsPage session={session('operator')} />);
  await user.click(await screen.findByRole('checkbox', { name: /gone@acme.example/ }));
  await user.click(screen.getByRole('button', { name: 'Lift' }));
  expect(asked.some((a) => a.method === 'DELETE')).toBe(false);
  await user.click(screen.getAllByRole('button', { name: 'Lift' }).at(-1)!);
  await vi.waitFor(() =>
    expect(asked.find((a) => a.method === 'DELETE')?.url.pathname).toMatch(/mail-suppressions\/msup-1$/),
  );
});
