// Invoices, and what their lines are made of. The invoice "now" is the one that
// this month's use would make.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none, type Period } from './queries';

export type Line = Schemas['InvoiceLine'];

/** Now is the address of the invoice that this month would make. */
export const now = 'now';

/** Bill is what an issued invoice and one that would be have in common. */
export interface Bill {
  number?: string;
  /** Id of who pays, of an issued one. */
  organization?: string;
  customer?: Schemas['Party'];
  from: string;
  to: string;
  issuedAt?: string;
  dueAt?: string;
  currency: string;
  lines: Line[];
  totalMicros: number;
}

export const useBill = (id: string, organization: string | undefined, month: Period) =>
  useQuery({
    queryKey: id === now ? ['preview', organization, month] : ['Invoice', id],
    enabled: id !== now || Boolean(organization),
    queryFn: async ({ signal }): Promise<Bill> => {
      if (id === now)
        return ok(api.GET('/v1/invoice-preview', { params: { query: { organization, ...month } }, signal }));
      const { meta, spec } = await ok(api.GET('/v1/invoices/{id}', { params: { path: { id } }, signal }));
      return { lines: [], organization: meta.organization, ...spec };
    },
  });

/** useExplanation of a line: its hours; with an hour, that one and its records. */
export const useExplanation = (
  id: string,
  organization: string | undefined,
  month: Period,
  line: string,
  hour?: string,
) =>
  useQuery({
    queryKey: ['explanation', id, id === now && organization, line, hour],
    enabled: Boolean(line) && (id !== now || Boolean(organization)),
    queryFn: ({ signal }) =>
      id === now
        ? ok(
            api.GET('/v1/invoice-explanation', {
              params: { query: none({ organization, ...month, line, hour }) },
              signal,
            }),
          )
        : ok(
            api.GET('/v1/invoices/{id}/explanation', { params: { path: { id }, query: none({ line, hour }) }, signal }),
          ),
  });
