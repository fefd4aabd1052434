// The state in one word of objects that are created, exist and are deleted.
import type { CauseText } from '../api/cause-text';
import { told, type Cause, type Told } from './cause';

export type State = 'Pending' | 'Creating' | 'Ready' | 'Deleting' | 'Failed' | 'RollingBack';

interface Thing {
  meta: { deletedAt?: string };
  status?: { phase?: 'Pending' | 'Creating' | 'Ready' | 'Deleting' | 'Failed'; lastError?: CauseText; cause?: Cause };
  /** Of objects that are placed. */
  assignment?: object;
}

export const stateOf = ({ meta, status }: Thing): State => (meta.deletedAt ? 'Deleting' : status?.phase || 'Pending');

/** whyOf returns why an object is not ready. */
export function whyOf({ status, assignment }: Thing): Told {
  if (status?.lastError) return told(status.lastError, status.cause);
  const { reason, cause }: { reason?: CauseText; cause?: Cause } = assignment ?? {};
  return status?.phase === 'Ready' ? told() : told(reason, cause);
}
