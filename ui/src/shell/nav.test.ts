import { expect, test } from 'vitest';
import type { Role, Session } from '../api/session';
import { isGroup, leadsTo, most, seen } from './nav';

const roles: Role[] = ['operator', 'reseller', 'admin', 'member', 'viewer', 'billing'];
const session = (role: Role) => ({ role, organization: 'org-1', revision: 1 }) as Session;

test.each(roles)('%s sees few items at the first level, and no address twice', (role) => {
  const items = seen(session(role));
  expect(items.length).toBeLessThanOrEqual(most);
  expect(items.length).toBeGreaterThan(1);
  const hrefs = items.flatMap((i) => (isGroup(i) ? i.entries : [i])).map((e) => e.href);
  expect(new Set(hrefs).size).toBe(hrefs.length);
  for (const g of items.filter(isGroup)) expect(g.entries.length).toBeGreaterThan(1);
});

test('a tenant has instances at the first level, an operator the cluster', () => {
  expect(seen(session('member')).some((i) => !isGroup(i) && i.href === '/instances')).toBe(true);
  expect(seen(session('operator'))[1]).toMatchObject({ title: 'nav.cluster' });
  expect(seen(session('member')).some((i) => isGroup(i) && i.title === 'nav.cluster')).toBe(false);
});

test('a page below an entry is the entry’s', () => {
  const entry = { href: '/nodes', text: 'nav.nodes', when: () => true } as const;
  expect(leadsTo(entry, '/nodes/node-1')).toBe(true);
  expect(leadsTo(entry, '/nodes-and-more')).toBe(false);
  expect(leadsTo({ ...entry, href: '/' }, '/nodes')).toBe(false);
});
