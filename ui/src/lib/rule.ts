// A rule of a security group in its editor.
import type { Schemas } from '../api/client';
import { nextKey, type Row } from './merge';

type SecurityRule = Schemas['SecurityRule'];

export interface RuleDraft extends Row {
  direction: SecurityRule['direction'];
  protocol: SecurityRule['protocol'];
  ports: string;
  /** Empty means everywhere, cidr means these addresses; else a group's ID. */
  remote: string;
  cidr: string;
}

export const newRule = (): RuleDraft => ({
  key: nextKey(),
  direction: 'ingress',
  protocol: 'tcp',
  ports: '',
  remote: '',
  cidr: '',
});

export const draftOf = (r: SecurityRule): RuleDraft => ({
  key: nextKey(),
  direction: r.direction,
  protocol: r.protocol,
  ports: r.ports ?? '',
  remote: r.group || (r.cidr ? 'cidr' : ''),
  cidr: r.cidr ?? '',
});

export const hasPorts = (p: SecurityRule['protocol']) => p === 'tcp' || p === 'udp';

/** ruleOf returns the rule to send for a draft. */
export const ruleOf = (d: RuleDraft): SecurityRule => ({
  direction: d.direction,
  protocol: d.protocol,
  ...(hasPorts(d.protocol) && d.ports.trim() && { ports: d.ports.trim() }),
  ...(d.remote === 'cidr' ? { cidr: d.cidr.trim() } : d.remote && { group: d.remote }),
});
