import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import type { Period } from './queries';

export type RevenueBy = 'month' | 'organization' | 'meter';
/** Revenue by `by`; rows that are still shown keep the grouping of their key. */
export type Revenue = Schemas['Revenue'] & { by: RevenueBy };

export const useRevenue = (period: Period, by: RevenueBy, token: string, limit = 50) =>
  useQuery({
    queryKey: ['revenue', period, by, token, limit],
    queryFn: async ({ signal }) => {
      const page = await ok(
        api.GET('/v1/revenue', {
          params: { query: { ...period, by, limit, ...(token && { continue: token }) } },
          signal,
        }),
      );
      return { ...page, items: page.items.map((s): Revenue => ({ ...s, by })) };
    },
    placeholderData: keepPreviousData,
  });
