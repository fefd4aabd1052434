// The settings for signing up.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { signUpSettingsOf } from './resource';

export type SignUpSettings = Schemas['SignUpSettings'];

/** useSignUpSettings returns the settings of a reseller's portal, or of the cluster's. */
export const useSignUpSettings = (reseller?: string) => {
  const of = signUpSettingsOf(reseller);
  return useQuery({
    queryKey: of.key(''),
    queryFn: ({ signal }) => ok(api.GET(of.path() as '/v1/sign-up-settings', { signal })),
  });
};
