// What the navigation leads to, in groups, and who sees it.
import { may, seesMachines, seesMoney, type Session } from '../api/session';
import type { Key } from '../i18n';

export interface Entry {
  href: string;
  text: Key;
  when: (s: Session) => boolean;
}

export interface Group {
  /** Without a title: above the groups. */
  title?: Key;
  entries: Entry[];
}

const seller = (s: Session) => may(s, 'reseller');
const operator = (s: Session) => may(s, 'operator');
const member = (s: Session) => may(s, 'member');
const admin = (s: Session) => may(s, 'admin');

/** An operator's come before what is also a tenant's. */
export const groups: Group[] = [
  {
    entries: [
      { href: '/', text: 'nav.dashboard', when: () => true },
      { href: '/instances', text: 'nav.instances', when: seesMachines },
      { href: '/apps', text: 'nav.apps', when: seesMachines },
      { href: '/images', text: 'nav.images', when: member },
    ],
  },
  {
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
      { href: '/setup', text: 'setup.title', when: operator },
    ],
  },
  {
    title: 'nav.customers',
    entries: [
      { href: '/organizations', text: 'nav.organizations', when: seller },
      { href: '/prices', text: 'nav.prices', when: operator },
      { href: '/revenue', text: 'nav.revenue', when: seller },
    ],
  },
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
      { href: '/invoices', text: 'nav.invoices', when: seesMoney },
    ],
  },
  {
    title: 'nav.organization',
    entries: [
      { href: '/projects', text: 'nav.projects', when: admin },
      { href: '/members', text: 'nav.members', when: admin },
      { href: '/keys', text: 'nav.keys', when: admin },
      { href: '/webhooks', text: 'nav.webhooks', when: admin },
      { href: '/audit', text: 'nav.audit', when: admin },
    ],
  },
];

/** seen are the groups with what a session may see of them. */
export const seen = (s: Session): Group[] =>
  groups.map((g) => ({ ...g, entries: g.entries.filter((e) => e.when(s)) })).filter((g) => g.entries.length > 0);
