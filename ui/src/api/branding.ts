// The portal's name and appearance, which anyone may read.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, base, ok, type Schemas } from './client';
import { brandingOf, changedMeanwhile, ifMatch, mostTries } from './resource';

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

/** LogoChanged reports that the logo was not changed, as someone else has changed it since it was shown. */
export class LogoChanged extends Error {}

interface LogoChange {
  /** The branding as shown to the user. */
  was: Branding;
  /** The new logo; without one, the logo is removed. */
  file?: File;
}

/** useLogo returns the mutation that replaces or removes a logo. Other changes of the branding since it was shown are
 * kept; a change of the logo makes it fail with LogoChanged, and the new one is shown. */
export function useLogo(reseller?: string) {
  const client = useQueryClient();
  const of = brandingOf(reseller);
  const path = `/v1${pathOf(reseller)}/logo` as '/v1/branding/logo';
  const send = (file: File | undefined, header: ReturnType<typeof ifMatch>) =>
    file
      ? api.PUT(path, {
          params: { header },
          headers: { 'Content-Type': 'image/png' },
          body: file as unknown as string,
          bodySerializer: (b) => b as BodyInit, // the file itself, not encoded as JSON
        })
      : api.DELETE(path, { params: { header } });
  return useMutation({
    mutationFn: async ({ was, file }: LogoChange) => {
      let now = was;
      for (let tries = 1; ; tries++) {
        try {
          return await ok<Branding>(send(file, ifMatch(now.revision)));
        } catch (e) {
          if (!changedMeanwhile(e) || tries === mostTries) throw e;
          const theirs = await of.get('');
          client.setQueryData(of.key(''), theirs);
          if (!theirs || theirs.revision === now.revision) throw e; // another kind of conflict
          if (theirs.logo !== was.logo) throw new LogoChanged();
          now = theirs;
        }
      }
    },
    onSuccess: (b) => void client.setQueryData(of.key(''), b),
  });
}
