// Webhooks, and the deliveries of their events.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none } from './queries';

export type Webhook = Schemas['Webhook'];
export type Delivery = Schemas['WebhookDelivery'];

// The watch does not report the progress of deliveries.
const again = { placeholderData: keepPreviousData, refetchInterval: 10_000 };

export const useWebhook = (id: string) =>
  useQuery({
    queryKey: ['Webhook', 'one', id],
    enabled: id !== '',
    queryFn: ({ signal }) => ok(api.GET('/v1/webhooks/{id}', { params: { path: { id } }, signal })),
    ...again,
  });

export const useDeliveries = (id: string, q: { limit?: number; continue?: string }) =>
  useQuery({
    queryKey: ['Webhook', 'deliveries', id, none(q)],
    enabled: id !== '',
    queryFn: ({ signal }) =>
      ok(api.GET('/v1/webhooks/{id}/deliveries', { params: { path: { id }, query: none(q) }, signal })),
    ...again,
  });

export const deleteWebhook = (w: Webhook) =>
  ok(api.DELETE('/v1/webhooks/{id}', { params: { path: { id: w.meta.id ?? w.meta.name } } }));

export const testWebhook = (id: string) => ok(api.POST('/v1/webhooks/{id}/test', { params: { path: { id } } }));
