// The filters of the audit log in the address.
import type { AuditQuery } from '../api/tenant';

/** The names in the address. Times are in UTC, in the format of a datetime-local input. */
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

/** auditQuery returns the API's parameters; invalid times are omitted. */
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

/** narrowed reports whether there is a filter other than order and organization. */
export const narrowed = (p: AuditParams): boolean =>
  auditParams.some((n) => n !== 'organization' && n !== 'order' && p[n] !== '');
