// Vouchers: what sellers create, and what organizations redeem.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type Voucher = Schemas['Voucher'];

/** voucherState returns the current state of a voucher. */
export const voucherState = (v: Voucher, now: Date = new Date()) => {
  if ((v.status?.redeemed ?? 0) >= (v.spec.redemptions ?? 1)) return 'used';
  return v.spec.expiresAt && new Date(v.spec.expiresAt) <= now ? 'expired' : 'open';
};

export const useCreateVoucher = () => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Voucher) => ok(api.POST('/v1/vouchers', { body })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['Voucher', 'list'] }),
  });
};

export const deleteVoucher = (v: Voucher) =>
  ok(api.DELETE('/v1/vouchers/{id}', { params: { path: { id: v.meta.id ?? v.meta.name } } }));

export const useRedeemVoucher = (organization: string | undefined) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (code: string) => ok(api.POST('/v1/voucher-redemptions', { body: { organization, code } })),
    onSuccess: () => {
      for (const queryKey of [
        ['Payment', 'list'],
        ['wallet', organization],
        ['ledger', organization],
      ])
        void client.invalidateQueries({ queryKey });
    },
  });
};
