// Payments, their refunds, and what banks take back of them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { may, type Session } from './session';

export type Payment = Schemas['Payment'];
export type Refund = Schemas['Refund'];
export type Dispute = Schemas['Dispute'];

export const usePayment = (id: string) =>
  useQuery({
    queryKey: ['Payment', 'one', id],
    queryFn: ({ signal }) => ok(api.GET('/v1/payments/{id}', { params: { path: { id } }, signal })),
    refetchInterval: 30_000,
  });

/** leftOf returns the part of a payment that can be refunded, in millionths of the currency. */
export const leftOf = ({ spec, status }: Payment) =>
  (spec.type ?? 'payment') === 'payment'
    ? Math.max(0, spec.amountMicros - (status?.refundedMicros ?? 0) - (status?.disputedMicros ?? 0))
    : 0;

/** takenOf returns what was refunded of a payment or taken back by a bank, in millionths of the currency. */
export const takenOf = ({ status }: Payment) => (status?.refundedMicros ?? 0) + (status?.disputedMicros ?? 0);

/** isOnline reports whether the payment provider can refund a payment: its reference is that of a charge there. */
export const isOnline = ({ spec }: Payment) =>
  (spec.type ?? 'payment') === 'payment' && spec.reference.startsWith('pi_');

/** sellsTo reports whether a session may refund payments of an organization. */
export const sellsTo = (s: Session, organization: string | undefined) =>
  may(s, 'operator') || (may(s, 'reseller') && organization !== s.organization);

/** ended reports whether the bank has decided about a dispute. */
export const ended = (d: Dispute) => ['Won', 'Lost', 'Closed'].includes(d.status?.state ?? '');

/** useCreateRefund refunds a payment. A request that is repeated with the same key makes the same refund. */
export const useCreateRefund = (payment: Payment, onDone: () => void) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ body, key }: { body: Refund; key: string }) =>
      ok(api.POST('/v1/refunds', { params: { header: { 'Idempotency-Key': key } }, body })),
    onSuccess: () => {
      const { organization } = payment.meta;
      for (const queryKey of [['Payment'], ['Refund'], ['wallet', organization], ['ledger', organization], ['revenue']])
        void client.invalidateQueries({ queryKey });
      onDone();
    },
  });
};
