// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../api/client';
import { newQueryClient } from '../api/session';
import { voucherState, type Voucher } from '../api/vouchers';
import { CreateVoucher } from './voucher';
import { RedeemVoucher } from '../parts/voucher';

afterEach(() => cleanup());

const wallet: Schemas['Wallet'] = {
  organization: 'org-000000000001',
  currency: 'EUR',
  balanceMicros: 0,
  unbilledMicros: 0,
  state: 'ok',
  vouchers: true,
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

async function redeem(code: string) {
  const user = userEvent.setup();
  await user.click(screen.getByRole('button', { name: 'Redeem voucher' }));
  await user.type(screen.getByLabelText(/Code/), code);
  await user.click(screen.getAllByRole('button', { name: 'Redeem voucher' }).at(-1)!);
}

test('a code gives credit, and the amount is told', async () => {
  const sent = stand(201, { kind: 'Payment', meta: { name: '' }, spec: { amountMicros: 12_500_000, currency: 'EUR' } });
  show(<RedeemVoucher wallet={wallet} />);
  await redeem(' abcd-efgh-jkmn ');
  expect(await screen.findByText(/12.50 added to the balance/)).toBeVisible();
  expect(screen.queryByRole('dialog')).toBeNull();
  expect(sent).toEqual([{ organization: 'org-000000000001', code: 'abcd-efgh-jkmn' }]);
});

test('a code that is not valid is told at the field', async () => {
  stand(400, { code: 'invalid', detail: 'the code is not valid', field: 'code' });
  show(<RedeemVoucher wallet={wallet} />);
  await redeem('x');
  expect(await screen.findByText(/the code is not valid/)).toBeVisible();
});

test('without vouchers there is no button', () => {
  show(<RedeemVoucher wallet={{ ...wallet, vouchers: false }} />);
  expect(screen.queryByRole('button')).toBeNull();
});

const made = (spec: Partial<Voucher['spec']> = {}, redeemed = 0): Voucher => ({
  kind: 'Voucher',
  meta: { name: 'v' },
  spec: { currency: 'EUR', amountMicros: 1e6, redemptions: 2, ...spec },
  status: { redeemed },
});

test('a voucher is open until it is used or expired', () => {
  const now = new Date('2026-03-01T00:00:00Z');
  expect(voucherState(made(), now)).toBe('open');
  expect(voucherState(made({}, 2), now)).toBe('used');
  expect(voucherState(made({ expiresAt: '2026-03-01T00:00:00Z' }), now)).toBe('expired');
});

test('who creates one sees its code, once', async () => {
  const sent = stand(201, { ...made(), code: 'ABCD-EFGH-JKMN-PQRS-TVWX' });
  const close = vi.fn();
  show(<CreateVoucher onClose={close} />);
  const user = userEvent.setup();
  await user.type(screen.getByLabelText(/Amount/), '50');
  await user.click(screen.getByRole('button', { name: 'Create voucher' }));
  expect(await screen.findByText('ABCD-EFGH-JKMN-PQRS-TVWX')).toBeVisible();
  expect(sent).toMatchObject([{ spec: { currency: 'EUR', amountMicros: 50_000_000, redemptions: 1 } }]);
  await user.click(screen.getByRole('button', { name: 'Done' }));
  expect(close).toHaveBeenCalledOnce();
});
