// Which page stands at which address, and who may open it. Each is loaded when
// it is first opened. The first that matches is shown.
import { lazy, type ComponentType } from 'react';
import { may, seesMachines, seesMoney, type Session } from './api/session';

interface Props {
  session: Session;
  /** From the address, where it has them; empty otherwise. */
  id: string;
  tab: string;
}

interface RouteTo {
  path: string;
  when: (s: Session) => boolean;
  Page: ComponentType<Props>;
}

const always = () => true;
const member = (s: Session) => may(s, 'member');
const admin = (s: Session) => may(s, 'admin');
const operator = (s: Session) => may(s, 'operator');

export const routes: RouteTo[] = [
  { path: '/', when: always, Page: lazy(() => import('./pages/dashboard').then((m) => ({ default: m.Dashboard }))) },
  { path: '/instances', when: seesMachines, Page: lazy(() => import('./pages/instances').then((m) => ({ default: m.Instances }))) },
  { path: '/apps', when: seesMachines, Page: lazy(() => import('./pages/apps').then((m) => ({ default: m.Apps }))) },
  { path: '/instances/new/:id?', when: member, Page: lazy(() => import('./pages/create-instance').then((m) => ({ default: m.CreateInstance }))) },
  { path: '/instances/:id/:tab?', when: seesMachines, Page: lazy(() => import('./pages/instance/instance').then((m) => ({ default: m.InstancePage }))) },

  { path: '/volumes', when: seesMachines, Page: lazy(() => import('./pages/storage/volumes').then((m) => ({ default: m.Volumes }))) },
  { path: '/snapshots', when: seesMachines, Page: lazy(() => import('./pages/storage/snapshots').then((m) => ({ default: m.Snapshots }))) },

  { path: '/networks', when: seesMachines, Page: lazy(() => import('./pages/network/networks').then((m) => ({ default: m.Networks }))) },
  { path: '/security-groups', when: seesMachines, Page: lazy(() => import('./pages/network/groups').then((m) => ({ default: m.Groups }))) },
  { path: '/security-groups/:id', when: seesMachines, Page: lazy(() => import('./pages/network/group').then((m) => ({ default: m.Group }))) },
  { path: '/floating-ips', when: seesMachines, Page: lazy(() => import('./pages/network/floating').then((m) => ({ default: m.FloatingIPs }))) },
  { path: '/load-balancers', when: seesMachines, Page: lazy(() => import('./pages/network/balancers').then((m) => ({ default: m.Balancers }))) },

  { path: '/nodes', when: operator, Page: lazy(() => import('./pages/nodes').then((m) => ({ default: m.Nodes }))) },

  { path: '/usage', when: always, Page: lazy(() => import('./pages/usage').then((m) => ({ default: m.Usage }))) },
  { path: '/invoices', when: seesMoney, Page: lazy(() => import('./pages/invoices').then((m) => ({ default: m.Invoices }))) },

  { path: '/keys', when: admin, Page: lazy(() => import('./pages/keys').then((m) => ({ default: m.Keys }))) },
  { path: '/projects', when: admin, Page: lazy(() => import('./pages/projects').then((m) => ({ default: m.Projects }))) },
  { path: '/audit', when: admin, Page: lazy(() => import('./pages/audit').then((m) => ({ default: m.Audit }))) },
  { path: '/account', when: always, Page: lazy(() => import('./pages/account/account').then((m) => ({ default: m.Account }))) },
  { path: '/members', when: admin, Page: lazy(() => import('./pages/members').then((m) => ({ default: m.Members }))) },
];
