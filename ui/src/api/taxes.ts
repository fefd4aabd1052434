// Which taxes a seller charges: for an operator the cluster, for a reseller itself.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type TaxSettings = Schemas['TaxSettings'];

export const useTaxSettings = () =>
  useQuery({
    queryKey: ['tax-settings'],
    queryFn: ({ signal }) => ok(api.GET('/v1/tax-settings', { signal })),
  });
