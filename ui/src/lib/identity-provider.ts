// An identity provider in its form, the conversion back, and what the provider must be told about this service.
import type { IdentityProvider, ProviderSpec } from '../api/identity-providers';
import type { Role } from '../api/session';
import { redirectAddress } from './oidc';
import { nextKey } from './merge';

export type Protocol = 'oidc' | 'saml';

export interface GrantRow {
  key: number;
  claim: string;
  value: string;
  role: Role;
  organization: string;
  project: string;
}

export interface CertificateRow {
  key: number;
  pem: string;
}

export interface ProviderForm {
  name: string;
  issuer: string;
  clientId: string;
  clientSecret: string;
  scopes: string;
  redirects: string;
  organization: string;
  create: boolean;
  grants: GrantRow[];
  groupsClaim: string;
  metadata: string;
  certificates: CertificateRow[];
  /** A further certificate. */
  certificate: string;
  emailDomains: string;
  nameIdFormat: 'persistent' | 'emailAddress';
  emailAttribute: string;
  nameAttribute: string;
  baseURL: string;
}

export const protocolOf = (p: IdentityProvider): Protocol => (p.spec.saml ? 'saml' : 'oidc');

export const newGrant = (): GrantRow => ({
  key: nextKey(),
  claim: 'groups',
  value: '',
  role: 'member',
  organization: '',
  project: '',
});

const lines = (text: string) => text.split(/[\s,]+/).filter(Boolean);
const joined = (list: string[] | undefined) => (list ?? []).join('\n');

/** ownerOf returns the organization that a provider belongs to; empty: the operators'. */
export const ownerOf = (p: IdentityProvider) => p.meta.organization ?? '';

/** providerForm returns the form of a provider; without one, of a new one of an organization or of the operators. */
export const providerForm = (p: IdentityProvider | undefined, organization = ''): ProviderForm => ({
  name: p?.meta.name ?? '',
  issuer: p?.spec.issuer ?? '',
  clientId: p?.spec.clientId ?? '',
  clientSecret: '',
  scopes: (p?.spec.scopes ?? []).join(' '),
  redirects: p ? joined(p.spec.redirects) : organization ? '' : redirectAddress(),
  organization: p?.spec.organization ?? '',
  create: p?.spec.create ?? false,
  grants: (p?.spec.grants ?? []).map(({ claim, value, grant }) => ({
    key: nextKey(),
    claim,
    value,
    role: grant.role,
    organization: grant.organization ?? '',
    project: grant.project ?? '',
  })),
  groupsClaim: p?.spec.groupsClaim ?? '',
  metadata: '',
  certificates: (p?.spec.saml?.certificates ?? []).map((pem) => ({ key: nextKey(), pem })),
  certificate: '',
  emailDomains: joined(p?.spec.saml?.emailDomains),
  nameIdFormat: p?.spec.saml?.nameIdFormat ?? 'persistent',
  emailAttribute: p?.spec.saml?.emailAttribute ?? '',
  nameAttribute: p?.spec.saml?.nameAttribute ?? '',
  baseURL: p?.spec.saml?.baseURL ?? '',
});

export const hasProject = (r: Role) => r === 'member' || r === 'viewer';
export const hasOrganization = (r: Role) => r !== 'operator';

/** samlOf returns the SAML settings. New metadata replaces the certificates, so they are not sent with it. */
function samlOf(p: IdentityProvider | undefined, f: ProviderForm): ProviderSpec['saml'] {
  const certificates = [...f.certificates.map((c) => c.pem), f.certificate.trim()].filter(Boolean);
  return {
    ...p?.spec.saml,
    ...(f.metadata.trim() ? { metadata: f.metadata.trim() } : p && { certificates }),
    emailDomains: lines(f.emailDomains),
    nameIdFormat: f.nameIdFormat,
    emailAttribute: f.emailAttribute.trim() || undefined,
    nameAttribute: f.nameAttribute.trim() || undefined,
    baseURL: f.baseURL.trim().replace(/\/$/, '') || undefined,
  };
}

/** providerOf returns the provider of a form; a secret is sent only if one was entered. */
export function providerOf(protocol: Protocol, p: IdentityProvider | undefined, f: ProviderForm): IdentityProvider {
  const oidc = {
    issuer: f.issuer.trim(),
    clientId: f.clientId.trim(),
    ...(f.clientSecret && { clientSecret: f.clientSecret }),
    scopes: lines(f.scopes),
  };
  return {
    kind: 'IdentityProvider',
    meta: { ...p?.meta, name: f.name.trim() },
    spec: {
      ...p?.spec,
      ...(protocol === 'oidc' ? oidc : { saml: samlOf(p, f) }),
      redirects: lines(f.redirects),
      organization: f.organization || undefined,
      create: f.create,
      groupsClaim: f.groupsClaim.trim() || undefined,
      grants: f.grants.map((g) => ({
        claim: g.claim.trim(),
        value: g.value.trim(),
        grant: {
          role: g.role,
          ...(hasOrganization(g.role) && g.organization && { organization: g.organization }),
          ...(hasProject(g.role) && g.project && { project: g.project }),
        },
      })),
    },
  };
}

/** grantWord is a row as `basalt identity-provider set --grant` takes it. */
export function grantWord(g: GrantRow): string {
  const project = hasProject(g.role) && g.project ? `/${g.project}` : '';
  const scope = hasOrganization(g.role) && g.organization ? `@${g.organization}${project}` : '';
  return `${g.claim}=${g.value}:${g.role}${scope}`;
}

/** organizationAddress is the address of the page at which people of an organization sign in. */
export const organizationAddress = (organization: string) => `${location.origin}/#/login/${organization}`;

/** serviceOf returns what a SAML provider must be told about this service. */
export function serviceOf(p: IdentityProvider): { entityID: string; acsURL: string; metadata: string } {
  const name = (ownerOf(p) && p.meta.id) || p.meta.name;
  const path = `/v1/login/saml/${encodeURIComponent(name)}`;
  const base = `${p.spec.saml?.baseURL ?? ''}${path}`;
  return { entityID: `${base}/metadata`, acsURL: `${base}/acs`, metadata: `${path}/metadata` };
}
