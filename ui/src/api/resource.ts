// The kinds whose objects are edited in forms: how to read, write and find them in the query cache.
import type { QueryKey } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from './client';
import { patchOf, settingsPatch } from './patch';

/** Resource is a kind whose objects have revisions: a change based on an old revision is refused. */
export interface Resource<T> {
  id: (o: T) => string;
  revision: (o: T) => number;
  /** The API path of an object; without an ID, the path for creating one. */
  path: (id?: string) => string;
  key: (id: string) => QueryKey;
  lists: QueryKey;
  /** Returns null if the object was deleted. */
  get: (id: string) => Promise<T | null>;
  /** patch sends the differences from was, and takes effect only at the revision of was. */
  patch: (id: string, was: T, now: T) => Promise<T>;
  /** partial returns the body of patch. */
  partial: (was: T, now: T) => object;
  post: (body: T) => Promise<T>;
}

interface Thing {
  kind: string;
  meta: Schemas['Meta'];
  spec: unknown;
}

/** ifMatch returns the header of a change that takes effect only at a revision. */
export const ifMatch = (revision = 0) => ({ 'If-Match': `"${revision}"` });
const mergePatchType = { 'Content-Type': 'application/merge-patch+json' };

/** resource returns the resource of a kind. All kinds have the same operations; the types of GPUPool represent them
 * here. */
function resource<T extends Thing>(kind: string, path: string): Resource<T> {
  const all = path as '/v1/gpu-pools';
  const one = `${path}/{id}` as '/v1/gpu-pools/{id}';
  const at = (id: string) => ({ params: { path: { id } } });
  const sent = (body: T) => ({ body: body as unknown as Schemas['GPUPool'] });
  const as = (answer: Promise<unknown>) => answer as Promise<T>;
  return {
    id: (o) => o.meta.id ?? '',
    revision: (o) => o.meta.revision ?? 0,
    path: (id) => (id ? `${path}/${id}` : path),
    key: (id) => [kind, 'one', id],
    lists: [kind, 'list'],
    get: (id) => orGone(as(ok(api.GET(one, at(id))))),
    patch: (id, was, now) =>
      as(
        ok(
          api.PATCH(one, {
            params: { ...at(id).params, header: ifMatch(was.meta.revision) },
            headers: mergePatchType,
            body: patchOf(was, now),
          }),
        ),
      ),
    partial: patchOf,
    post: (body) => as(ok(api.POST(all, sent(body)))),
  };
}

async function orGone<T>(answer: Promise<T>): Promise<T | null> {
  try {
    return await answer;
  } catch (e) {
    if (e instanceof ApiError && e.code === 'not_found') return null;
    throw e;
  }
}

export const apps = resource<Schemas['App']>('App', '/v1/apps');
export const cephClusters = resource<Schemas['CephCluster']>('CephCluster', '/v1/ceph-clusters');
export const disks = resource<Schemas['Disk']>('Disk', '/v1/disks');
export const externalNetworks = resource<Schemas['ExternalNetwork']>('ExternalNetwork', '/v1/external-networks');
export const flavors = resource<Schemas['Flavor']>('Flavor', '/v1/flavors');
export const floatingIPs = resource<Schemas['FloatingIP']>('FloatingIP', '/v1/floating-ips');
export const gpuPools = resource<Schemas['GPUPool']>('GPUPool', '/v1/gpu-pools');
export const gpus = resource<Schemas['GPU']>('GPU', '/v1/gpus');
export const groups = resource<Schemas['Group']>('Group', '/v1/groups');
export const identityProviders = resource<Schemas['IdentityProvider']>('IdentityProvider', '/v1/identity-providers');
export const images = resource<Schemas['Image']>('Image', '/v1/images');
export const instances = resource<Schemas['Instance']>('Instance', '/v1/instances');
export const loadBalancers = resource<Schemas['LoadBalancer']>('LoadBalancer', '/v1/load-balancers');
export const migrations = resource<Schemas['Migration']>('Migration', '/v1/migrations');
export const nodes = resource<Schemas['Node']>('Node', '/v1/nodes');
export const organizations = resource<Schemas['Organization']>('Organization', '/v1/organizations');
export const portalDomains = resource<Schemas['PortalDomain']>('PortalDomain', '/v1/portal-domains');
export const priceBooks = resource<Schemas['PriceBook']>('PriceBook', '/v1/price-books');
export const projects = resource<Schemas['Project']>('Project', '/v1/projects');
export const securityGroups = resource<Schemas['SecurityGroup']>('SecurityGroup', '/v1/security-groups');
export const volumes = resource<Schemas['Volume']>('Volume', '/v1/volumes');

/** single returns the resource of settings: one object that always exists. The types of Branding represent all of them
 * here. */
function single<T extends { revision?: number }>(path: string, key: QueryKey): Resource<T> {
  const at = path as '/v1/branding';
  const send = (was: T, now: T) =>
    ok(
      api.PATCH(at, {
        params: { header: ifMatch(was.revision) },
        headers: mergePatchType,
        body: settingsPatch(was, now),
      }),
    ) as unknown as Promise<T>;
  return {
    id: () => '',
    revision: (o) => o.revision ?? 0,
    path: () => path,
    key: () => key,
    lists: key,
    get: () => ok(api.GET(at)) as unknown as Promise<T>,
    patch: (_, was, now) => send(was, now),
    partial: settingsPatch,
    post: (body) => send({} as T, body),
  };
}

/** brandingOf returns the branding of a reseller, or that which this portal shows. */
export const brandingOf = (reseller?: string) =>
  reseller
    ? single<Schemas['Branding']>(`/v1/organizations/${reseller}/branding`, [`branding of ${reseller}`])
    : branding;

export const acmeSettings = single<Schemas['ACMESettings']>('/v1/acme-settings', ['acme-settings']);
export const branding = single<Schemas['Branding']>('/v1/branding', ['branding']);
export const mail = single<Schemas['MailSettings']>('/v1/mail', ['mail']);
export const paymentSettings = single<Schemas['PaymentSettings']>('/v1/payment-settings', ['payment-settings']);
export const securitySettings = single<Schemas['SecuritySettings']>('/v1/security-settings', ['security-settings']);

/** signUpSettingsOf returns the sign-up settings of a reseller's portal; undefined: of the cluster's. */
export const signUpSettingsOf = (reseller: string | undefined) =>
  single<Schemas['SignUpSettings']>(
    reseller ? `/v1/organizations/${reseller}/sign-up-settings` : '/v1/sign-up-settings',
    ['sign-up-settings', reseller],
  );

const queried = (path: string, organization: string | undefined) =>
  organization ? `${path}?organization=${encodeURIComponent(organization)}` : path;

/** topUpOf returns the automatic top-up of an organization; undefined: the caller's. */
export const topUpOf = (organization: string | undefined) =>
  single<Schemas['TopUp']>(queried('/v1/top-up', organization), ['top-up', organization]);

/** autoPayOf returns the automatic payment of an organization's invoices; undefined: the caller's. */
export const autoPayOf = (organization: string | undefined) =>
  single<Schemas['AutoPay']>(queried('/v1/auto-pay', organization), ['auto-pay', organization]);

/** taxSettingsOf returns the tax settings of a reseller; undefined: of the operator, or of the caller's reseller. */
export const taxSettingsOf = (organization: string | undefined) =>
  single<Schemas['TaxSettings']>(queried('/v1/tax-settings', organization), ['tax-settings', organization]);

/** changedMeanwhile reports whether a change was refused because the object was changed since it was read. */
export const changedMeanwhile = (e: unknown) =>
  e instanceof ApiError && (e.code === 'conflict' || e.code === 'precondition_failed');

export const mostTries = 5; // for objects that change by themselves: nodes report every few seconds

/** change changes an object as currently stored, for actions without a form. */
export async function change<T>(of: Resource<T>, id: string, changed: (now: T) => T): Promise<T> {
  for (let tries = 1; ; tries++) {
    const now = await of.get(id);
    if (!now) throw new ApiError({ code: 'not_found', detail: '' });
    try {
      return await of.patch(id, now, changed(now));
    } catch (e) {
      if (!changedMeanwhile(e) || tries === mostTries) throw e;
    }
  }
}
