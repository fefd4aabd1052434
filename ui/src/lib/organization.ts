// An organization's state in one word.
import type { Schemas } from '../api/client';

type Organization = Schemas['Organization'];

export const standings = ['active', 'warn', 'restricted', 'suspended', 'deleting'] as const;
export type Standing = (typeof standings)[number];

/** standingOf returns the most severe state of an organization. */
export function standingOf({ meta, spec, status }: Organization): Standing {
  const billing = status?.billing?.state ?? 'ok';
  if (meta.deletedAt) return 'deleting';
  if (spec.suspended || billing === 'suspended' || billing === 'deleteDue') return 'suspended';
  if (spec.restricted || billing === 'stop') return 'restricted';
  return billing === 'warn' ? 'warn' : 'active';
}

export interface Balance {
  key: 'cust.wallet' | 'cust.due' | 'cust.balance';
  micros: number;
}

/** balanceOf describes a wallet: credit, or an amount due, which is positive. */
export function balanceOf(micros: number, mode?: NonNullable<Organization['spec']['billing']>['mode']): Balance {
  if (mode === 'prepaid') return { key: 'cust.wallet', micros };
  if (micros < 0 || (mode === 'invoice' && micros === 0)) return { key: 'cust.due', micros: Math.abs(micros) };
  return { key: 'cust.balance', micros };
}

/** reasonOf returns the recorded reason for the state. */
export const reasonOf = ({ spec, status }: Organization): string =>
  spec.suspended?.reason ||
  spec.restricted?.reason ||
  (status?.billing?.state !== 'ok' && status?.billing?.message) ||
  '';
