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

const operator = (s: Session) => may(s, 'operator');
const member = (s: Session) => may(s, 'member');
const admin = (s: Session) => may(s, 'admin');

export const groups: Group[] = [
  {
    entries: [
      { href: '/', text: 'nav.dashboard', when: () => true },
      { href: '/instances', text: 'nav.instances', when: seesMachines },
      { href: '/images', text: 'cat.title', when: member },
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
      { href: '/keys', text: 'nav.keys', when: admin },
      { href: '/members', text: 'nav.members', when: admin },
    ],
  },
];

/** seen are the groups with what a session may see of them. */
export const seen = (s: Session): Group[] => groups.map((g) => ({ ...g, entries: g.entries.filter((e) => e.when(s)) })).filter((g) => g.entries.length > 0);
