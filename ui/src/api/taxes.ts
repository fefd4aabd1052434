// Which taxes a seller charges: for an operator the cluster, for a reseller itself.
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from './client';
import { taxSettingsOf } from './resource';

export type TaxSettings = Schemas['TaxSettings'];

/** useTaxSettings returns the settings of a reseller; undefined: of the operator, or of the caller's reseller. */
export const useTaxSettings = (organization: string | undefined) => {
  const settings = taxSettingsOf(organization);
  return useQuery({ queryKey: settings.key(''), queryFn: () => settings.get('') });
};
