// The portal's name and appearance, which anyone may read.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, base, ok, type Schemas } from './client';

export type Branding = Schemas['Branding'];

const key = ['branding'];

export const useBranding = () =>
  useQuery({
    queryKey: key,
    queryFn: ({ signal }) => ok(api.GET('/v1/branding', { signal })),
    staleTime: 300_000,
    retry: false,
  });

/** logoOf returns the URL of the branding's logo, or of the portal's own if there is none. */
export const logoOf = (b: Branding | undefined) => (b?.logo ? `${base}/v1/branding/logo?${b.logo}` : '/favicon.svg');

export const productOf = (b: Branding | undefined) => b?.productName || 'Basalt';

function useChange<V>(send: (v: V) => Promise<Branding>) {
  const client = useQueryClient();
  return useMutation({ mutationFn: send, onSuccess: (b) => void client.setQueryData(key, b) });
}

/** usePutLogo sends the file itself as the body, which the client must not encode as JSON. */
export const usePutLogo = () =>
  useChange((file: File) =>
    ok(
      api.PUT('/v1/branding/logo', {
        body: file as unknown as string,
        bodySerializer: (b) => b as BodyInit,
        headers: { 'Content-Type': 'image/png' },
      }),
    ),
  );

export const useDeleteLogo = () => useChange(() => ok(api.DELETE('/v1/branding/logo')));
