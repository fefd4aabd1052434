// The state in one word of objects that are created, exist and are deleted.
export type State = 'Pending' | 'Creating' | 'Ready' | 'Deleting' | 'Failed' | 'RollingBack';

interface Thing {
  meta: { deletedAt?: string };
  status?: { phase?: 'Pending' | 'Creating' | 'Ready' | 'Deleting' | 'Failed'; lastError?: string };
  /** Of objects that are placed. */
  assignment?: object;
}

export const stateOf = ({ meta, status }: Thing): State => (meta.deletedAt ? 'Deleting' : status?.phase || 'Pending');

/** whyOf returns why an object is not ready. */
export const whyOf = ({ status, assignment }: Thing): string =>
  status?.lastError || (status?.phase === 'Ready' ? '' : reasonOf(assignment));

function reasonOf(assignment: object | undefined): string {
  const reason: unknown = assignment && 'reason' in assignment ? assignment.reason : '';
  return typeof reason === 'string' ? reason : '';
}
