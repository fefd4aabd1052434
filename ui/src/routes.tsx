// The pages by address, and who may open them. Each page is loaded when it is first opened. The first match is
// shown.
import { lazy as later, type ComponentType } from 'react';
import { may, seesMachines, seesMoney, type Session } from './api/session';
import { withWords } from './i18n';

interface Props {
  session: Session;
  /** From the address if it has one; otherwise empty. */
  id: string;
  tab: string;
}

interface RouteTo {
  path: string;
  when: (s: Session) => boolean;
  Page: ComponentType<Props> & { load: () => Promise<unknown> };
}

type Load = () => Promise<{ default: ComponentType<Props> }>;

/** first is React's lazy, with a load function that loads the page before it is shown. */
const first = (load: Load) => Object.assign(later(load), { load });

/** lazy is first for pages that show other words than the first pages. */
const lazy = (load: Load) => first(withWords(load));

const always = () => true;
const member = (s: Session) => may(s, 'member');
const admin = (s: Session) => may(s, 'admin');
const seller = (s: Session) => may(s, 'reseller');
const operator = (s: Session) => may(s, 'operator');

export const routes: RouteTo[] = [
  {
    path: '/',
    when: always,
    Page: first(() => import('./pages/dashboard/dashboard').then((m) => ({ default: m.Dashboard }))),
  },
  {
    path: '/instances',
    when: seesMachines,
    Page: lazy(() => import('./pages/instances').then((m) => ({ default: m.Instances }))),
  },
  { path: '/apps', when: seesMachines, Page: lazy(() => import('./pages/apps').then((m) => ({ default: m.Apps }))) },
  {
    path: '/instances/new/:id?',
    when: member,
    Page: lazy(() => import('./pages/create-instance').then((m) => ({ default: m.CreateInstance }))),
  },
  {
    path: '/instances/:id/:tab?',
    when: seesMachines,
    Page: lazy(() => import('./pages/instance/instance').then((m) => ({ default: m.InstancePage }))),
  },

  {
    path: '/volumes',
    when: seesMachines,
    Page: lazy(() => import('./pages/storage/volumes').then((m) => ({ default: m.Volumes }))),
  },
  {
    path: '/snapshots',
    when: seesMachines,
    Page: lazy(() => import('./pages/storage/snapshots').then((m) => ({ default: m.Snapshots }))),
  },

  {
    path: '/networks',
    when: seesMachines,
    Page: lazy(() => import('./pages/network/networks').then((m) => ({ default: m.Networks }))),
  },
  {
    path: '/security-groups',
    when: seesMachines,
    Page: lazy(() => import('./pages/network/groups').then((m) => ({ default: m.Groups }))),
  },
  {
    path: '/security-groups/:id',
    when: seesMachines,
    Page: lazy(() => import('./pages/network/group').then((m) => ({ default: m.Group }))),
  },
  {
    path: '/floating-ips',
    when: seesMachines,
    Page: lazy(() => import('./pages/network/floating').then((m) => ({ default: m.FloatingIPs }))),
  },
  {
    path: '/load-balancers',
    when: seesMachines,
    Page: lazy(() => import('./pages/network/balancers').then((m) => ({ default: m.Balancers }))),
  },

  { path: '/nodes', when: operator, Page: lazy(() => import('./pages/nodes').then((m) => ({ default: m.Nodes }))) },
  {
    path: '/nodes/:id',
    when: operator,
    Page: lazy(() => import('./pages/node').then((m) => ({ default: m.NodePage }))),
  },

  {
    path: '/pools',
    when: operator,
    Page: lazy(() => import('./pages/pools/pools').then((m) => ({ default: m.Pools }))),
  },
  {
    path: '/all-instances',
    when: operator,
    Page: lazy(() => import('./pages/all-instances/all-instances').then((m) => ({ default: m.AllInstances }))),
  },
  {
    path: '/images/:tab?',
    when: seesMachines,
    Page: lazy(() => import('./pages/images/images').then((m) => ({ default: m.Images }))),
  },
  {
    path: '/storage/:tab?',
    when: operator,
    Page: lazy(() => import('./pages/storage/storage').then((m) => ({ default: m.Storage }))),
  },
  {
    path: '/network-health',
    when: operator,
    Page: lazy(() => import('./pages/network-health').then((m) => ({ default: m.NetworkHealth }))),
  },
  {
    path: '/maintenance/:tab?',
    when: operator,
    Page: lazy(() => import('./pages/maintenance/maintenance').then((m) => ({ default: m.Maintenance }))),
  },
  { path: '/alerts', when: operator, Page: lazy(() => import('./pages/alerts').then((m) => ({ default: m.Alerts }))) },
  {
    path: '/organizations',
    when: seller,
    Page: lazy(() => import('./pages/organizations/list').then((m) => ({ default: m.Organizations }))),
  },
  {
    path: '/organizations/:id/:tab?',
    when: seller,
    Page: lazy(() => import('./pages/organizations/organization').then((m) => ({ default: m.OrganizationPage }))),
  },
  {
    path: '/prices',
    when: seller,
    Page: lazy(() => import('./pages/prices/list').then((m) => ({ default: m.Prices }))),
  },
  {
    path: '/prices/:id',
    when: seller,
    Page: lazy(() => import('./pages/prices/book').then((m) => ({ default: m.BookPage }))),
  },
  { path: '/revenue', when: seller, Page: lazy(() => import('./pages/revenue').then((m) => ({ default: m.Revenue }))) },
  {
    path: '/setup/:id?',
    when: operator,
    Page: lazy(() => import('./pages/setup/setup').then((m) => ({ default: m.Setup }))),
  },
  {
    path: '/security',
    when: operator,
    Page: lazy(() => import('./pages/security').then((m) => ({ default: m.SecurityPage }))),
  },
  {
    path: '/certificates',
    when: operator,
    Page: lazy(() => import('./pages/certificates').then((m) => ({ default: m.CertificatesPage }))),
  },
  {
    path: '/identity-providers',
    when: admin,
    Page: lazy(() => import('./pages/identity-providers/list').then((m) => ({ default: m.IdentityProviders }))),
  },
  {
    path: '/identity-providers/:id/:tab?',
    when: admin,
    Page: lazy(() => import('./pages/identity-providers/provider').then((m) => ({ default: m.IdentityProviderPage }))),
  },
  {
    path: '/tax-settings/:id?',
    when: seller,
    Page: lazy(() => import('./pages/tax-settings').then((m) => ({ default: m.TaxSettingsPage }))),
  },
  {
    path: '/sign-up-settings',
    when: seller,
    Page: lazy(() => import('./pages/sign-up-settings').then((m) => ({ default: m.SignUpSettingsPage }))),
  },
  { path: '/mail', when: operator, Page: lazy(() => import('./pages/mail').then((m) => ({ default: m.MailPage }))) },
  {
    path: '/mail-suppressions',
    when: admin,
    Page: lazy(() => import('./pages/mail-suppressions').then((m) => ({ default: m.MailSuppressionsPage }))),
  },
  {
    path: '/vouchers',
    when: operator,
    Page: lazy(() => import('./pages/vouchers').then((m) => ({ default: m.Vouchers }))),
  },
  {
    path: '/payment-settings',
    when: operator,
    Page: lazy(() => import('./pages/payment-settings').then((m) => ({ default: m.PaymentSettingsPage }))),
  },
  {
    path: '/branding',
    when: seller,
    Page: lazy(() => import('./pages/branding').then((m) => ({ default: m.BrandingPage }))),
  },

  { path: '/usage', when: always, Page: lazy(() => import('./pages/usage').then((m) => ({ default: m.Usage }))) },
  {
    path: '/costs',
    when: seesMoney,
    Page: lazy(() => import('./pages/costs').then((m) => ({ default: m.CostsPage }))),
  },
  {
    path: '/invoices',
    when: seesMoney,
    Page: lazy(() => import('./pages/invoices/list').then((m) => ({ default: m.Invoices }))),
  },
  {
    path: '/payments/:id',
    when: seesMoney,
    Page: lazy(() => import('./pages/payments/payment').then((m) => ({ default: m.PaymentPage }))),
  },
  {
    path: '/refunds',
    when: seller,
    Page: lazy(() => import('./pages/payments/refunds').then((m) => ({ default: m.RefundsPage }))),
  },
  {
    path: '/disputes',
    when: seller,
    Page: lazy(() => import('./pages/payments/disputes').then((m) => ({ default: m.DisputesPage }))),
  },
  {
    path: '/checkouts/:id',
    when: seesMoney,
    Page: lazy(() => import('./pages/checkout').then((m) => ({ default: m.CheckoutPage }))),
  },
  {
    path: '/invoices/:id/:tab?',
    when: seesMoney,
    Page: lazy(() => import('./pages/invoices/bill').then((m) => ({ default: m.BillPage }))),
  },

  { path: '/keys', when: admin, Page: lazy(() => import('./pages/keys').then((m) => ({ default: m.Keys }))) },
  {
    path: '/projects',
    when: admin,
    Page: lazy(() => import('./pages/projects').then((m) => ({ default: m.Projects }))),
  },
  { path: '/groups', when: admin, Page: lazy(() => import('./pages/groups').then((m) => ({ default: m.Groups }))) },
  { path: '/audit', when: admin, Page: lazy(() => import('./pages/audit').then((m) => ({ default: m.Audit }))) },
  {
    path: '/access-review',
    when: admin,
    Page: lazy(() => import('./pages/access-review').then((m) => ({ default: m.AccessReview }))),
  },
  {
    path: '/support-grants',
    when: admin,
    Page: lazy(() => import('./pages/support-grants').then((m) => ({ default: m.SupportGrants }))),
  },
  {
    path: '/webhooks/:id?',
    when: admin,
    Page: lazy(() => import('./pages/webhooks').then((m) => ({ default: m.Webhooks }))),
  },
  {
    path: '/account',
    when: always,
    Page: lazy(() => import('./pages/account/account').then((m) => ({ default: m.Account }))),
  },
  { path: '/members', when: admin, Page: lazy(() => import('./pages/members').then((m) => ({ default: m.Members }))) },
];
