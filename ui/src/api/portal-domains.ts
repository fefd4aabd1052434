// Host names of resellers' portals.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';
import { change, portalDomains } from './resource';

export type PortalDomain = Schemas['PortalDomain'];

/** certificateOf returns the state of a host name's certificate. */
export const certificateOf = (d: PortalDomain, now: Date = new Date()) => {
  if (!d.spec.expiresAt) return 'none';
  return new Date(d.spec.expiresAt) <= now ? 'expired' : 'valid';
};

/** requestedOf returns the certificate that the cluster requested for a host name: when it expires, if it is valid, and
 * why the last request failed. It is used while none that was stored is valid. */
export const requestedOf = (d: PortalDomain, now: Date = new Date()) => {
  const { expiresAt, conditions } = d.status ?? {};
  return {
    expiresAt: expiresAt && new Date(expiresAt) > now ? expiresAt : undefined,
    problem: certificateOf(d, now) === 'valid' ? undefined : conditions?.find((c) => c.message)?.message,
  };
};

const idOf = (d: PortalDomain) => d.meta.id ?? d.meta.name;

function useWrite<V>(send: (v: V) => Promise<PortalDomain>, onDone: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: () => (void client.invalidateQueries({ queryKey: portalDomains.lists }), onDone()),
  });
}

export const useRequestPortalDomain = (onDone: () => void) => useWrite(portalDomains.post, onDone);

export const approvePortalDomain = (d: PortalDomain, approved: boolean) =>
  change(portalDomains, idOf(d), (now) => ({ ...now, spec: { ...now.spec, approved } }));

export const useSetCertificate = (onDone: () => void) =>
  useWrite(
    (d: PortalDomain) =>
      change(portalDomains, idOf(d), (now) => ({
        ...now,
        spec: { ...now.spec, certificate: d.spec.certificate, key: d.spec.key },
      })),
    onDone,
  );

export const deletePortalDomain = (d: PortalDomain) =>
  ok(api.DELETE('/v1/portal-domains/{id}', { params: { path: { id: idOf(d) } } }));
