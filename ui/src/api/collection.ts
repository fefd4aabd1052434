// The collections of the kinds for lists: one page at a time, sorted and filtered by search, labels and fields on
// the server.
import { api, ok, type Instance, type Schemas } from './client';
import { none, type PageOf } from './queries';

export interface PageQuery extends PageOf {
  organization?: string;
  sort?: string;
  labelSelector?: string;
  fieldSelector?: string;
  count?: boolean;
  node?: string;
  gpu?: string;
  phase?: string;
}

export interface ObjectPage<T> {
  items: T[];
  continue?: string;
  total?: number;
}

export interface Collection<T> {
  kind: string;
  read: (q: PageQuery, signal?: AbortSignal) => Promise<ObjectPage<T>>;
  /** Its rows are computed: they have no labels, and an order of their own. */
  computed?: boolean;
}

/** collection returns the collection of a kind. All lists have the same parameters; the type of that of instances
 * represents them here. */
const collection = <T>(kind: string, path: string): Collection<T> => ({
  kind,
  read: (q, signal) =>
    ok(api.GET(path as '/v1/instances', { params: { query: none(q) }, signal })) as unknown as Promise<ObjectPage<T>>,
});

export const collections = {
  backups: collection<Schemas['Backup']>('Backup', '/v1/backups'),
  budgets: collection<Schemas['Budget']>('Budget', '/v1/budgets'),
  creditNotes: collection<Schemas['CreditNote']>('CreditNote', '/v1/credit-notes'),
  disputes: collection<Schemas['Dispute']>('Dispute', '/v1/disputes'),
  floatingIPs: collection<Schemas['FloatingIP']>('FloatingIP', '/v1/floating-ips'),
  identityProviders: collection<Schemas['IdentityProvider']>('IdentityProvider', '/v1/identity-providers'),
  images: collection<Schemas['Image']>('Image', '/v1/images'),
  instances: collection<Instance>('Instance', '/v1/instances'),
  groups: collection<Schemas['Group']>('Group', '/v1/groups'),
  invoices: collection<Schemas['Invoice']>('Invoice', '/v1/invoices'),
  keys: collection<Schemas['APIKey']>('APIKey', '/v1/api-keys'),
  loadBalancers: collection<Schemas['LoadBalancer']>('LoadBalancer', '/v1/load-balancers'),
  mailMessages: collection<Schemas['MailMessage']>('MailMessage', '/v1/mail-messages'),
  mailSuppressions: collection<Schemas['MailSuppression']>('MailSuppression', '/v1/mail-suppressions'),
  migrations: collection<Schemas['Migration']>('Migration', '/v1/migrations'),
  networks: collection<Schemas['Network']>('Network', '/v1/networks'),
  nodes: collection<Schemas['Node']>('Node', '/v1/nodes'),
  organizations: collection<Schemas['Organization']>('Organization', '/v1/organizations'),
  payments: collection<Schemas['Payment']>('Payment', '/v1/payments'),
  portalDomains: collection<Schemas['PortalDomain']>('PortalDomain', '/v1/portal-domains'),
  projects: collection<Schemas['Project']>('Project', '/v1/projects'),
  refunds: collection<Schemas['Refund']>('Refund', '/v1/refunds'),
  routers: collection<Schemas['Router']>('Router', '/v1/routers'),
  securityGroups: collection<Schemas['SecurityGroup']>('SecurityGroup', '/v1/security-groups'),
  snapshots: collection<Schemas['Snapshot']>('Snapshot', '/v1/snapshots'),
  supportGrants: collection<Schemas['SupportGrant']>('SupportGrant', '/v1/support-grants'),
  users: collection<Schemas['User']>('User', '/v1/users'),
  vouchers: collection<Schemas['Voucher']>('Voucher', '/v1/vouchers'),
  volumes: collection<Schemas['Volume']>('Volume', '/v1/volumes'),
  webhooks: collection<Schemas['Webhook']>('Webhook', '/v1/webhooks'),
} as const;
