// The settings by which certificates are requested, for operators.
import { useQuery } from '@tanstack/react-query';
import type { Schemas } from './client';
import { acmeSettings } from './resource';

export type ACMESettings = Schemas['ACMESettings'];

export const useACMESettings = () =>
  useQuery({
    queryKey: acmeSettings.key(''),
    queryFn: () => acmeSettings.get(''),
    refetchInterval: 30_000, // the cluster changes the status
  });
