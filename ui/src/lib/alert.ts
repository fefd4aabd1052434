// The page of an alert, and the most severe alerts.
import type { Schemas } from '../api/client';

export type Alert = Schemas['Alert'];

const pages: Record<string, (id: string) => string> = {
  Node: (id) => (id ? `/nodes/${id}` : '/nodes'),
  GPU: () => '/pools',
  CephCluster: () => '/storage',
  Disk: () => '/storage',
  BackupTarget: () => '/storage/backups',
  Backup: () => '/storage/backups',
  Image: () => '/images',
  Instance: (id) => `/instances/${id}`,
  ExternalNetwork: () => '/network-health',
  Network: () => '/network-health',
  Router: () => '/network-health',
  Webhook: (id) => `/webhooks/${id}`,
  Invoice: () => '/invoices',
  Dispute: () => '/disputes',
  VATCheck: () => '/organizations',
  MailSuppression: () => '/mail-suppressions',
};

/** hrefOf returns the address of the page about an alert's object; undefined if there is none. */
export const hrefOf = (a: Alert): string | undefined => pages[a.kind]?.(a.id ?? '');

/** keyOf returns a key that stays the same while the alert is active. */
export const keyOf = (a: Alert) => `${a.code} ${a.kind} ${a.id ?? a.name ?? ''}`;
