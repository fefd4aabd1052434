// The portal's name and appearance, which anyone may read.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, base, ok, type Schemas } from './client';
import { brandingOf } from './resource';

export type Branding = Schemas['Branding'];

/** pathOf returns the path of a reseller's branding below /v1, or of that which this portal shows. */
const pathOf = (reseller: string | undefined) => (reseller ? `/organizations/${reseller}/branding` : '/branding');

/** useBranding returns a reseller's own branding, or that which this portal shows. */
export const useBranding = (reseller?: string) => {
  const of = brandingOf(reseller);
  return useQuery({
    queryKey: of.key(''),
    queryFn: ({ signal }) => ok(api.GET(of.path() as '/v1/branding', { signal })),
    staleTime: 300_000,
    retry: false,
  });
};

/** logoOf returns the URL of the branding's logo, or of the portal's own if there is none. */
export const logoOf = (b: Branding | undefined, reseller?: string) =>
  b?.logo ? `${base}/v1${pathOf(reseller)}/logo?${b.logo}` : '/favicon.svg';

export const productOf = (b: Branding | undefined) => b?.productName || 'Basalt';

function useChange<V>(reseller: string | undefined, send: (v: V) => Promise<Branding>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: (b) => void client.setQueryData(brandingOf(reseller).key(''), b),
  });
}

/** usePutLogo sends the file itself as the body, which the client must not encode as JSON. */
export const usePutLogo = (reseller?: string) =>
  useChange(reseller, (file: File) =>
    ok(
      api.PUT(`/v1${pathOf(reseller)}/logo` as '/v1/branding/logo', {
        body: file as unknown as string,
        bodySerializer: (b) => b as BodyInit,
        headers: { 'Content-Type': 'image/png' },
      }),
    ),
  );

export const useDeleteLogo = (reseller?: string) =>
  useChange(reseller, () => ok(api.DELETE(`/v1${pathOf(reseller)}/logo` as '/v1/branding/logo')));
