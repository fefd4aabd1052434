import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none, type Period } from './queries';

export type CostBy = 'project' | 'resource' | 'meter';
export type Costs = Schemas['CostPage'];

/** The most rows that are read; with more, there are more resources than a page shows. */
const most = 10_000;

/** How costs are divided: over the whole period, or by day with this many rows per day. */
export type Division = 'total' | { top: number };

/** useCosts returns the costs of an organization's usage, all pages together. */
export const useCosts = (organization: string | undefined, period: Period, by: CostBy, division: Division) =>
  useQuery({
    queryKey: ['costs', organization, period, by, division],
    enabled: Boolean(organization),
    queryFn: async ({ signal }): Promise<Costs & { by: CostBy }> => {
      const items: Schemas['Cost'][] = [];
      let next: string | undefined;
      for (;;) {
        const step = division === 'total' ? ('total' as const) : ('day' as const);
        const top = division === 'total' ? undefined : division.top;
        const query = none({ organization, ...period, by, step, top, limit: 1000, continue: next });
        const page = await ok(api.GET('/v1/costs', { params: { query }, signal }));
        items.push(...page.items);
        next = page.continue;
        if (!next || items.length >= most) return { ...page, items, by };
      }
    },
    placeholderData: keepPreviousData,
    staleTime: 60_000,
  });

export const useBudgets = (organization: string) =>
  useQuery({
    queryKey: ['Budget', 'list', { organization }],
    queryFn: ({ signal }) => ok(api.GET('/v1/budgets', { params: { query: { organization, limit: 100 } }, signal })),
  });
