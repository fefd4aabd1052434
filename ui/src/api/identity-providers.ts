// Identity providers, and tests of them.
import { useMutation, useQuery } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from './client';
import { identityProviders } from './resource';

export type IdentityProvider = Schemas['IdentityProvider'];
export type ProviderSpec = IdentityProvider['spec'];
export type RefusedSignIn = Schemas['RefusedSignIn'];
export type TestResult = Schemas['IdentityProviderTestResult'];

/** useIdentityProvider returns a provider, or null if it was deleted. */
export const useIdentityProvider = (id: string) =>
  useQuery({ queryKey: identityProviders.key(id), queryFn: () => identityProviders.get(id) });

export const deleteProvider = (p: IdentityProvider) =>
  ok(api.DELETE('/v1/identity-providers/{id}', { params: { path: { id: p.meta.id ?? '' } } }));

/** useRefusedSignIns returns why sign-ins with a provider were refused lately. */
export const useRefusedSignIns = (id: string) =>
  useQuery({
    queryKey: ['refused-sign-ins', id],
    queryFn: ({ signal }) => ok(api.GET('/v1/identity-providers/{id}/refusals', { params: { path: { id } }, signal })),
    refetchInterval: 10_000,
  });

/** useLoginProviders returns the names of the operators' providers, or of an organization's, which are public. */
export const useLoginProviders = (organization = '') =>
  useQuery({
    queryKey: ['login-providers', organization],
    queryFn: ({ signal }) =>
      ok(api.GET('/v1/login/oidc', { ...(organization && { params: { query: { organization } } }), signal })),
    retry: false,
  });

/** useOwnProviders returns the providers of an organization, to its administrators. There are few. */
export const useOwnProviders = (organization: string) =>
  useQuery({
    queryKey: [...identityProviders.lists, 'of', organization],
    queryFn: ({ signal }) =>
      ok(api.GET('/v1/identity-providers', { params: { query: { organization, limit: 100 } }, signal })),
  });

/** useBeginLogin begins a sign-in; then gets the address at the provider, and the flow to keep. */
export const useBeginLogin = (then: (begun: Schemas['OIDCFlow']) => void) =>
  useMutation({
    mutationFn: (body: Schemas['OIDCBegin']) => ok(api.POST('/v1/login/oidc', { body })),
    onSuccess: then,
  });

/** useTestResult asks once for the result of a test; a code can be used once. */
export const useTestResult = (id: string, back: Schemas['IdentityProviderTest'] | undefined) =>
  useQuery({
    queryKey: ['provider-test', id, back?.state],
    enabled: Boolean(back?.code),
    retry: false,
    staleTime: Infinity,
    gcTime: Infinity,
    refetchOnWindowFocus: false,
    queryFn: async (): Promise<TestResult> => {
      if (!back) throw new ApiError({ code: 'invalid', detail: '' });
      return ok(api.POST('/v1/identity-providers/{id}/test', { params: { path: { id } }, body: back }));
    },
  });
