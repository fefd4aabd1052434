// Final invoices: an organization's invoice until now, before the end of the month.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok } from './client';

/** useFinalAmount returns the invoices that would be issued. */
export const useFinalAmount = (organization: string | undefined) =>
  useQuery({
    queryKey: ['final-invoices', organization],
    gcTime: 0,
    queryFn: ({ signal }) =>
      ok(api.POST('/v1/final-invoices', { params: { query: { dryRun: 'all' } }, body: { organization }, signal })),
  });

export const useIssueFinalInvoices = (organization: string | undefined) => {
  const client = useQueryClient();
  return useMutation({
    mutationFn: () => ok(api.POST('/v1/final-invoices', { body: { organization } })),
    onSuccess: () => {
      for (const queryKey of [
        ['Invoice', 'list'],
        ['wallet', organization],
        ['ledger', organization],
        ['preview', organization],
        ['revenue'],
      ])
        void client.invalidateQueries({ queryKey });
    },
  });
};
