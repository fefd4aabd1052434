// What narrows the audit trail, as it stands in the address.
import type { AuditQuery } from '../api/tenant';

/** The names in the address. Times are of UTC, as an input of date and time has them. */
export const auditParams = [
  'organization',
  'actor',
  'operation',
  'kind',
  'object',
  'removed',
  'from',
  'to',
  'order',
] as const;
export type AuditParams = Record<(typeof auditParams)[number], string>;

const moment = (text: string): string | undefined => {
  const at = new Date(`${text}Z`);
  return text && !Number.isNaN(at.getTime()) ? at.toISOString() : undefined;
};

/** auditQuery is what the API is asked; a time that is none is left out. */
export const auditQuery = (p: AuditParams): AuditQuery => ({
  organization: p.organization,
  oldest: p.order === 'oldest' || undefined,
  actor: p.actor.trim(),
  operation: p.operation.trim(),
  kind: p.kind.trim(),
  object: p.object.trim(),
  removed: p.removed === 'true' || undefined,
  from: moment(p.from),
  to: moment(p.to),
});

/** narrowed says whether anything but the order and whose they are is asked for. */
export const narrowed = (p: AuditParams): boolean =>
  auditParams.some((n) => n !== 'organization' && n !== 'order' && p[n] !== '');
