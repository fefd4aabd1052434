// Which taxes a seller charges: for an operator the cluster, for a reseller itself.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { taxSettingsOf } from './resource';

export type TaxSettings = Schemas['TaxSettings'];

/** useTaxSettings returns the settings of a reseller; undefined: of the operator, or of the caller's reseller. */
export const useTaxSettings = (organization: string | undefined) => {
  const settings = taxSettingsOf(organization);
  return useQuery({ queryKey: settings.key(''), queryFn: () => settings.get('') });
};

/** useVATCheck reads the verification of an organization's VAT number, if it is verified. */
export const useVATCheck = (organization: string) =>
  useQuery({
    queryKey: ['VATCheck', 'list', { organization }],
    queryFn: ({ signal }) => ok(api.GET('/v1/vat-checks', { params: { query: { organization, limit: 1 } }, signal })),
  });
