// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { isOnline, leftOf, sellsTo, takenOf, type Payment } from '../api/refunds';
import { newQueryClient, type Session } from '../api/session';
import { RefundPayment } from './refund';

afterEach(() => cleanup());

const payment = (spec: Partial<Payment['spec']> = {}, status: Payment['status'] = {}): Payment => ({
  kind: 'Payment',
  meta: { id: 'pay-000000000001', name: 'pay-000000000001', organization: 'org-000000000001' },
  spec: { type: 'payment', currency: 'EUR', amountMicros: 100e6, reference: 'bank-1', ...spec },
  status,
});

interface Sent {
  key: string | null;
  body: unknown;
}

/** stand replaces the API by one that returns one response, and records the requests. */
function stand(status: number, answer: object): Sent[] {
  const sent: Sent[] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    if (r.method === 'POST') sent.push({ key: r.headers.get('Idempotency-Key'), body: await r.json() });
    return new Response(JSON.stringify(answer), { status, headers: { 'Content-Type': 'application/json' } });
  });
  return sent;
}

function show(p: Payment) {
  const onClose = vi.fn();
  render(
    <QueryClientProvider client={newQueryClient()}>
      <RefundPayment payment={p} onClose={onClose} />
    </QueryClientProvider>,
  );
  return { user: userEvent.setup(), onClose };
}

const send = () => screen.getByRole('button', { name: /^Refund €/ });

test('what is left of a payment can be refunded', () => {
  const p = payment({}, { refundedMicros: 30e6, disputedMicros: 20e6 });
  expect([leftOf(p), takenOf(p)]).toEqual([50e6, 50e6]);
  expect(leftOf(payment({}, { refundedMicros: 30e6, disputedMicros: 90e6 }))).toBe(0);
  expect(leftOf(payment({ type: 'voucher' }))).toBe(0);
  expect([isOnline(payment({ reference: 'pi_1' })), isOnline(payment())]).toEqual([true, false]);
  expect(isOnline(payment({ type: 'refund', reference: 'pi_1' }))).toBe(false);
});

test('whoever sells to an organization refunds its payments', () => {
  const session = (role: Session['role'], organization: string) => ({ role, organization }) as Session;
  expect(sellsTo(session('operator', ''), 'org-1')).toBe(true);
  expect(sellsTo(session('reseller', 'org-2'), 'org-1')).toBe(true);
  expect(sellsTo(session('reseller', 'org-1'), 'org-1')).toBe(false);
  expect(sellsTo(session('admin', 'org-2'), 'org-1')).toBe(false);
  expect(sellsTo(session('billing', 'org-2'), 'org-1')).toBe(false);
});

test('a part of a bank transfer is refunded by hand, once however often it is sent', async () => {
  const sent = stand(503, { code: 'unavailable', detail: 'no leader' });
  const { user } = show(payment());
  await user.clear(screen.getByLabelText(/Amount/));
  await user.type(screen.getByLabelText(/Amount/), '12,50');
  await user.type(screen.getByLabelText(/^Reason/), ' outage ');
  await user.type(screen.getByLabelText(/^Reference/), 'bank-2');
  await user.click(send());
  await user.click(send());
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[0]?.body).toEqual({
    kind: 'Refund',
    meta: { name: '', organization: 'org-000000000001' },
    spec: { payment: 'pay-000000000001', amountMicros: 12_500_000, reason: 'outage', reference: 'bank-2' },
  });
  expect(sent[0]?.key).toBeTruthy();
  expect(sent[1]).toEqual(sent[0]);
});

test.each([
  ['more than is left', '70.01', /At most €70.00 can be refunded/],
  ['nothing, which would be all', '0', /Enter an amount/],
  ['less than nothing', '-5', /Enter an amount/],
  ['no amount', 'all', /Enter an amount/],
])('an amount that is %s is not sent', async (_, text, error) => {
  const sent = stand(201, {});
  const { user } = show(payment({}, { refundedMicros: 30e6 }));
  await user.clear(screen.getByLabelText(/Amount/));
  await user.type(screen.getByLabelText(/Amount/), text);
  await user.type(screen.getByLabelText(/^Reason/), 'outage');
  await user.type(screen.getByLabelText(/^Reference/), 'bank-2');
  await user.click(screen.getByRole('button', { name: /^Refund / }));
  expect(await screen.findAllByText(error)).not.toHaveLength(0);
  expect(sent).toEqual([]);
});

test('a payment by card is refunded by the provider unless it was returned by hand', async () => {
  const sent = stand(201, { kind: 'Refund', meta: { name: '' }, spec: {} });
  const { user, onClose } = show(payment({ reference: 'pi_1' }));
  expect(screen.queryByLabelText(/^Reference/)).toBeNull();
  await user.type(screen.getByLabelText(/^Reason/), 'outage');
  await user.click(send());
  await waitFor(() => expect(onClose).toHaveBeenCalled());
  expect(sent[0]?.body).toMatchObject({ spec: { amountMicros: 100e6, reason: 'outage' } });
  expect(sent[0]?.body).not.toHaveProperty('spec.manual');
  await user.click(screen.getByLabelText(/without the payment provider/));
  await user.click(send());
  expect(await screen.findAllByText(/Required/)).not.toHaveLength(0);
  await user.type(screen.getByLabelText(/^Reference/), 'bank-3');
  await user.click(send());
  await waitFor(() => expect(sent).toHaveLength(2));
  expect(sent[1]?.body).toMatchObject({ spec: { manual: true, reference: 'bank-3' } });
});

test('what the server refuses is told at the field', async () => {
  stand(400, { code: 'invalid', detail: 'must be a multiple of 10000 millionths', field: 'spec.amountMicros' });
  const { user, onClose } = show(payment({ reference: 'pi_1' }));
  await user.type(screen.getByLabelText(/^Reason/), 'outage');
  await user.click(send());
  expect(await screen.findAllByText(/must be a multiple/)).not.toHaveLength(0);
  expect(onClose).not.toHaveBeenCalled();
});
