// Payments by card: checkouts, and the provider's settings.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type Checkout = Schemas['Checkout'];
export type PaymentSettings = Schemas['PaymentSettings'];

export const usePaymentSettings = () =>
  useQuery({
    queryKey: ['payment-settings'],
    queryFn: ({ signal }) => ok(api.GET('/v1/payment-settings', { signal })),
    refetchInterval: 10_000,
  });

/** ended reports whether a checkout has reached its final state. */
export const ended = (c: Checkout) => ['Paid', 'Failed', 'Expired'].includes(c.status?.state ?? '');

/** useCheckout polls a checkout until it has ended. */
export const useCheckout = (id: string) =>
  useQuery({
    queryKey: ['checkout', id],
    queryFn: ({ signal }) => ok(api.GET('/v1/checkouts/{id}', { params: { path: { id } }, signal })),
    refetchInterval: (q) => (q.state.data && ended(q.state.data) ? false : 3_000),
  });

/** useInvoiceCheckouts reads the payments by card of an invoice, the newest first. */
export const useInvoiceCheckouts = (organization: string | undefined, invoice: string) =>
  useQuery({
    queryKey: ['Checkout', 'list', organization, invoice],
    enabled: Boolean(organization),
    queryFn: ({ signal }) =>
      ok(
        api.GET('/v1/checkouts', {
          params: { query: { organization, fieldSelector: `spec.invoice=${invoice}`, sort: '-createdAt' } },
          signal,
        }),
      ),
    refetchInterval: (q) => (q.state.data?.items?.every(ended) ? 30_000 : 5_000),
  });

/** useBeginCheckout starts a payment and opens the provider's page. */
export const useBeginCheckout = (organization: string | undefined, leave: (url: string) => void) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (spec: Schemas['CheckoutSpec']) =>
      ok(
        api.POST('/v1/checkouts', {
          body: { kind: 'Checkout', meta: { name: '', organization }, spec },
        }),
      ),
    onSuccess: (c) => {
      void client.invalidateQueries({ queryKey: ['wallet', organization] });
      // Only a page of the provider is opened.
      if (c.status?.url?.startsWith('https://')) leave(c.status.url);
    },
  });
};
