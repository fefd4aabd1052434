// The settings for signing up.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type SignUpSettings = Schemas['SignUpSettings'];

export const useSignUpSettings = () =>
  useQuery({
    queryKey: ['sign-up-settings'],
    queryFn: ({ signal }) => ok(api.GET('/v1/sign-up-settings', { signal })),
  });
