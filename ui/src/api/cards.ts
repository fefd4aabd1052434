// Payment cards on file, and the automatic top-up and payment that charge them.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type PaymentCard = Schemas['Card'];
export type TopUp = Schemas['TopUp'];
export type AutoPay = Schemas['AutoPay'];

const pending = (c: PaymentCard) => !['Saved', 'Failed', 'Expired'].includes(c.status?.state ?? '');

/** useCards reads the payment cards of an organization, and again while one is being entered. */
export const useCards = (organization: string | undefined, on = true) =>
  useQuery({
    queryKey: ['Card', 'list', organization],
    enabled: on && Boolean(organization),
    queryFn: ({ signal }) => ok(api.GET('/v1/cards', { params: { query: { organization } }, signal })),
    refetchInterval: (q) => (q.state.data?.items?.some(pending) ? 5_000 : false),
  });

/** saved returns the cards that can be charged. */
export const saved = (cards: PaymentCard[] | undefined) => cards?.filter((c) => c.status?.state === 'Saved') ?? [];

/** useAddCard opens the provider's page on which a card is entered. */
export const useAddCard = (organization: string | undefined, leave: (url: string) => void) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => ok(api.POST('/v1/cards', { body: { kind: 'Card', meta: { name: '', organization }, spec: {} } })),
    onSuccess: (c) => {
      void client.invalidateQueries({ queryKey: ['Card', 'list', organization] });
      // Only a page of the provider is opened.
      if (c.status?.url?.startsWith('https://')) leave(c.status.url);
    },
  });
};

export const useDefaultCard = (organization: string | undefined) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => ok(api.POST('/v1/cards/{id}/default', { params: { path: { id } } })),
    onSuccess: () => client.invalidateQueries({ queryKey: ['Card', 'list', organization] }),
  });
};

export const deleteCard = (c: PaymentCard) =>
  ok(api.DELETE('/v1/cards/{id}', { params: { path: { id: c.meta.id ?? c.meta.name } } }));

export const useTopUp = (organization: string | undefined) =>
  useQuery({
    queryKey: ['top-up', organization],
    queryFn: ({ signal }) => ok(api.GET('/v1/top-up', { params: { query: { organization } }, signal })),
    refetchInterval: 30_000,
  });

export const useAutoPay = (organization: string | undefined, on = true) =>
  useQuery({
    queryKey: ['auto-pay', organization],
    enabled: on,
    queryFn: ({ signal }) => ok(api.GET('/v1/auto-pay', { params: { query: { organization } }, signal })),
    refetchInterval: 30_000,
  });
