// Where an alert leads, and what the worst are.
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
};

/** hrefOf is the page about what an alert is about; nothing where there is none. */
export const hrefOf = (a: Alert): string | undefined => pages[a.kind]?.(a.id ?? '');

/** keyOf is the same as long as the alert is there. */
export const keyOf = (a: Alert) => `${a.code} ${a.kind} ${a.id ?? a.name ?? ''}`;
