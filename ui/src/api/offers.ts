// Available offers, and whether a request would succeed.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { CauseText } from './cause-text';
import type { Instance } from './client';
import { api, ApiError, asApiError, ok, type Schemas } from './client';

export interface OfferQuery {
  project: string;
  flavor: string;
  rootBytes: number;
  model?: string;
  pool?: string;
  tier?: Schemas['Offer']['tier'];
  vramBytes?: number;
  sharePercent?: number;
}

/** useOffers returns the offers for instances of a flavor; with vramBytes, those of one slice. */
export const useOffers = (q: OfferQuery, on = true) =>
  useQuery({
    queryKey: ['offers', q],
    enabled: on && q.flavor !== '' && q.project !== '',
    queryFn: ({ signal }) => {
      const { rootBytes, tier, ...rest } = q;
      const query = { ...rest, ...(rootBytes > 0 && { rootBytes }), ...(tier && { tier }) };
      return ok(api.GET('/v1/offers', { params: { query }, signal }));
    },
    placeholderData: keepPreviousData,
    refetchInterval: 10_000,
    retry: false,
  });

/** useSlices returns the usual slices of all GPUs, for any flavor. */
export const useSlices = () =>
  useQuery({
    queryKey: ['offers', 'slices'],
    queryFn: ({ signal }) =>
      ok(api.GET('/v1/offers', { params: { query: { tier: 'standard', limit: 1000 } }, signal })),
    refetchInterval: 30_000,
    retry: false,
  });

/** useCapacity returns how much of the GPUs is allocated, and when they are expected to be full. */
export const useCapacity = () =>
  useQuery({
    queryKey: ['capacity'],
    queryFn: ({ signal }) => ok(api.GET('/v1/capacity', { signal })),
    staleTime: 600_000,
    retry: false,
  });

/** useInstanceCost returns what an instance costs per hour, and has cost this month. */
export const useInstanceCost = (instance: string) =>
  useQuery({
    queryKey: ['cost', instance],
    queryFn: ({ signal }) => ok(api.GET('/v1/instances/{id}/cost', { params: { path: { id: instance } }, signal })),
    retry: false,
    staleTime: 60_000,
    enabled: instance !== '',
  });

/** useSettled returns a value once it has not changed for ms milliseconds. */
export function useSettled<T>(value: T, ms: number): T {
  const [settled, settle] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => settle(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return settled;
}

/** Tried is the server's response to a dry run of an instance. */
export interface Tried {
  /** Whether there is a response. */
  done: boolean;
  /** An error at fields. */
  error: ApiError | null;
  /** Codes of its warnings. */
  warnings: string[];
  /** The text and the cause of the warning that there is no room. */
  noRoom?: { text: CauseText; cause?: Schemas['Cause'] | undefined } | undefined;
  /** The place that the instance would have in the queue. */
  queue?: Schemas['InstanceQueue'] | undefined;
}

const nothing: Tried = { done: false, error: null, warnings: [] };

/** useDryRun creates an instance, given as JSON text, as a dry run. */
export const useDryRun = (body: string, on: boolean): Tried =>
  useTried(['create', body], on, (signal) =>
    ok(
      api.POST('/v1/instances', {
        params: { query: { dryRun: 'all' } },
        body: JSON.parse(body) as Instance,
        signal,
      }),
    ),
  );

/** useDryChange changes an instance by a merge patch, given as JSON text, as a dry run. */
export const useDryChange = (id: string, patch: string, on: boolean): Tried =>
  useTried(['change', id, patch], on, (signal) =>
    ok(
      api.PATCH('/v1/instances/{id}', {
        params: { path: { id }, query: { dryRun: 'all' } },
        headers: { 'Content-Type': 'application/merge-patch+json' },
        body: JSON.parse(patch) as Record<string, never>,
        signal,
      }),
    ),
  );

function useTried(key: string[], on: boolean, send: (signal: AbortSignal) => Promise<Instance>): Tried {
  const tried = useQuery({
    queryKey: ['dryRun', 'Instance', ...key],
    enabled: on,
    gcTime: 0,
    staleTime: 5_000,
    retry: false,
    queryFn: async ({ signal }): Promise<Tried> => {
      try {
        const i = await send(signal);
        const full = i.warnings?.find((w) => w.code === 'no-room-now');
        return {
          done: true,
          error: null,
          warnings: (i.warnings ?? []).map((w) => w.code),
          noRoom: full && { text: full.message, cause: full.cause },
          queue: i.queue,
        };
      } catch (e) {
        const said = asApiError(e);
        if (said.fields.length > 0) return { done: true, error: said, warnings: [] };
        throw e;
      }
    },
  });
  return on ? (tried.data ?? nothing) : nothing;
}
