// The state of the certificate of a host name, from what its owner has stored and what the cluster has requested.
import type { Schemas } from '../api/client';

export type CertificateState =
  'stored' | 'issued' | 'renewing' | 'requested' | 'failed' | 'limited' | 'expired' | 'waiting' | 'none';

export interface NamedCertificate {
  state: CertificateState;
  expiresAt?: string | undefined;
  /** When it is renewed, or requested again. */
  nextAt?: string | undefined;
  /** Why the last request failed. */
  problem?: string | undefined;
}

const after = (at: string | undefined, now: Date) => (at && new Date(at) > now ? at : undefined);

/** certificateState returns the state of a name's certificate. stored is when the one expires that its owner has stored;
 * it is preferred while it is valid. enabled reports whether certificates are requested. */
export function certificateState(
  status: Schemas['CertificateStatus'] | undefined,
  enabled: boolean,
  stored: string | undefined,
  now: Date = new Date(),
): NamedCertificate {
  if (after(stored, now)) return { state: 'stored', expiresAt: stored };
  const ready = status?.conditions?.find((c) => c.type === 'CertificateReady');
  const found = {
    expiresAt: status?.expiresAt,
    nextAt: enabled ? status?.nextAt : undefined,
    problem: ready?.reason === 'Failed' || ready?.reason === 'RateLimited' ? ready.message : undefined,
  };
  const state = (): CertificateState => {
    if (after(status?.expiresAt, now)) return found.problem ? 'renewing' : 'issued';
    if (ready?.reason === 'Failed') return 'failed';
    if (ready?.reason === 'RateLimited') return 'limited';
    if (enabled && ready?.reason === 'Requested') return 'requested';
    if (status?.expiresAt ?? stored) return 'expired';
    return enabled ? 'waiting' : 'none';
  };
  return { ...found, expiresAt: found.expiresAt ?? stored, state: state() };
}
