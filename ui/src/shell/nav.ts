// The navigation, and who sees which entries: at most eight items at the first level, some of which are groups.
import { may, seesMachines, seesMoney, type Session } from '../api/session';
import type { Key } from '../i18n';

export interface Entry {
  href: string;
  text: Key;
  when: (s: Session) => boolean;
}

/** Group is a collapsible group of entries. */
export interface Group {
  title: Key;
  entries: Entry[];
}

export type Item = Entry | Group;

export const isGroup = (i: Item): i is Group => 'entries' in i;

const seller = (s: Session) => may(s, 'reseller');
const operator = (s: Session) => may(s, 'operator');
const resellerOnly = (s: Session) => seller(s) && !operator(s);
const member = (s: Session) => may(s, 'member');
const admin = (s: Session) => may(s, 'admin');

const entries = {
  dashboard: { href: '/', text: 'nav.dashboard', when: () => true },
  instances: { href: '/instances', text: 'nav.instances', when: seesMachines },
  apps: { href: '/apps', text: 'nav.apps', when: seesMachines },
  images: { href: '/images', text: 'nav.images', when: member },
} satisfies Record<string, Entry>;

const cluster: Group = {
  title: 'nav.cluster',
  entries: [
    { href: '/alerts', text: 'alert.title', when: operator },
    { href: '/nodes', text: 'nav.nodes', when: operator },
    { href: '/pools', text: 'pool.title', when: operator },
    { href: '/all-instances', text: 'all.title', when: operator },
    { href: '/storage', text: 'sto.title', when: operator },
    { href: '/network-health', text: 'xnet.title', when: operator },
    { href: '/maintenance', text: 'mnt.title', when: operator },
    { href: '/branding', text: 'nav.branding', when: operator },
    { href: '/mail', text: 'mail.title', when: operator },
    { href: '/mail-suppressions', text: 'sup.title', when: operator },
    { href: '/identity-providers', text: 'idp.title', when: operator },
    { href: '/security', text: 'sec.title', when: operator },
    { href: '/certificates', text: 'acme.title', when: operator },
    { href: '/setup', text: 'setup.title', when: operator },
  ],
};

const customers: Group = {
  title: 'nav.customers',
  entries: [
    { href: '/organizations', text: 'nav.organizations', when: seller },
    { href: '/prices', text: 'nav.prices', when: seller },
    { href: '/tax-settings', text: 'tax.title', when: seller },
    { href: '/vouchers', text: 'vch.title', when: operator },
    { href: '/sign-up-settings', text: 'sus.title', when: seller },
    { href: '/payment-settings', text: 'pay.settings', when: operator },
    { href: '/refunds', text: 'refund.title', when: seller },
    { href: '/disputes', text: 'dispute.title', when: seller },
    { href: '/revenue', text: 'nav.revenue', when: seller },
    { href: '/branding', text: 'nav.branding', when: resellerOnly }, // operators: cluster
  ],
};

const compute: Group = { title: 'nav.compute', entries: [entries.instances, entries.apps, entries.images] };

const rest: Group[] = [
  {
    title: 'nav.storage',
    entries: [
      { href: '/volumes', text: 'nav.volumes', when: seesMachines },
      { href: '/snapshots', text: 'nav.snapshots', when: seesMachines },
    ],
  },
  {
    title: 'nav.network',
    entries: [
      { href: '/networks', text: 'nav.networks', when: seesMachines },
      { href: '/security-groups', text: 'nav.groups', when: seesMachines },
      { href: '/floating-ips', text: 'nav.floating', when: seesMachines },
      { href: '/load-balancers', text: 'nav.balancers', when: seesMachines },
    ],
  },
  {
    title: 'nav.money',
    entries: [
      { href: '/usage', text: 'nav.usage', when: () => true },
      { href: '/costs', text: 'nav.costs', when: seesMoney },
      { href: '/invoices', text: 'nav.invoices', when: seesMoney },
    ],
  },
  {
    title: 'nav.organization',
    entries: [
      { href: '/projects', text: 'nav.projects', when: admin },
      { href: '/members', text: 'nav.members', when: admin },
      { href: '/groups', text: 'grp.title', when: admin },
      { href: '/identity-providers', text: 'idp.title', when: (s) => admin(s) && !operator(s) }, // operators: cluster
      { href: '/keys', text: 'nav.keys', when: admin },
      { href: '/webhooks', text: 'nav.webhooks', when: admin },
      { href: '/support-grants', text: 'sgr.title', when: admin },
      { href: '/mail-suppressions', text: 'sup.title', when: (s) => admin(s) && !operator(s) }, // operators: cluster
      { href: '/access-review', text: 'nav.access', when: admin },
      { href: '/audit', text: 'nav.audit', when: admin },
    ],
  },
];

/** most is the maximum number of first-level items for any role. */
export const most = 8;

/** Sellers and operators see customers and the cluster first, and instances one level down; tenants see instances
 * first. */
const itemsOf = (s: Session): Item[] =>
  seller(s)
    ? [entries.dashboard, cluster, customers, compute, ...rest]
    : [entries.dashboard, ...compute.entries, ...rest];

/** seen returns the items that a session may see: entries, and groups of several. */
export const seen = (s: Session): Item[] =>
  itemsOf(s).flatMap((item): Item[] => {
    if (!isGroup(item)) return item.when(s) ? [item] : [];
    const may = item.entries.filter((e) => e.when(s));
    return may.length > 1 ? [{ ...item, entries: may }] : may;
  });

/** leadsTo reports whether a path belongs to an entry. */
export const leadsTo = (e: Entry, path: string) =>
  e.href === '/' ? path === '/' : path === e.href || path.startsWith(`${e.href}/`);
