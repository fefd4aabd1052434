// Invoices, and the usage behind their lines. The invoice "now" is a preview of the current month's.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { none, type Period } from './queries';

export type Line = Schemas['InvoiceLine'];

/** now is the address of the preview of this month's invoice. */
export const now = 'now';

/** Bill has the fields that an issued invoice and a preview share. */
export interface Bill {
  number?: string;
  /** ID of the organization that pays an issued invoice. */
  organization?: string;
  customer?: Schemas['Party'];
  prices?: Pick<Schemas['PriceBookSpec'], 'seller'>;
  tax?: Schemas['InvoiceTax'];
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

/** useExplanation returns the hours of a line; with an hour, that hour and its records. */
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
