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
  { path: '/instances/new', when: member, Page: lazy(() => import('./pages/create-instance').then((m) => ({ default: m.CreateInstance }))) },
  { path: '/instances/:id/:tab?', when: seesMachines, Page: lazy(() => import('./pages/instance/instance').then((m) => ({ default: m.InstancePage }))) },

  { path: '/nodes', when: operator, Page: lazy(() => import('./pages/nodes').then((m) => ({ default: m.Nodes }))) },
  { path: '/nodes/:id', when: operator, Page: lazy(() => import('./pages/node').then((m) => ({ default: m.NodePage }))) },

  { path: '/usage', when: always, Page: lazy(() => import('./pages/usage').then((m) => ({ default: m.Usage }))) },
  { path: '/invoices', when: seesMoney, Page: lazy(() => import('./pages/invoices').then((m) => ({ default: m.Invoices }))) },

  { path: '/keys', when: admin, Page: lazy(() => import('./pages/keys').then((m) => ({ default: m.Keys }))) },
  { path: '/members', when: admin, Page: lazy(() => import('./pages/members').then((m) => ({ default: m.Members }))) },
];
