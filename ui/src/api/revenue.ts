import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import type { Period } from './queries';

export type RevenueBy = 'month' | 'organization' | 'meter';
export type Revenue = Schemas['Revenue'];

export const useRevenue = (period: Period, by: RevenueBy, token: string, limit = 50) =>
  useQuery({
    queryKey: ['revenue', period, by, token, limit],
    queryFn: ({ signal }) =>
      ok(
        api.GET('/v1/revenue', {
          params: { query: { ...period, by, limit, ...(token && { continue: token }) } },
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
  });
