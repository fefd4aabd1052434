// An instance's state in one word, as `basalt instance list` says it.
import type { Schemas } from '../api/client';
import type { Key } from '../i18n';

type Instance = Schemas['Instance'];
export type Phase = NonNullable<NonNullable<Instance['status']>['phase']> | 'NodeLost' | 'Moving';

/** phases are all of them, in the order in which one comes to be. */
export const phases: readonly Phase[] = [
  'Pending',
  'Creating',
  'Starting',
  'Running',
  'Stopping',
  'Stopped',
  'Moving',
  'NodeLost',
  'Failed',
  'Deleting',
];

export function phaseOf({ meta, assignment: a = {}, status: s = {} }: Instance): Phase {
  if (meta.deletedAt) return 'Deleting';
  if (a.nodeLost) return 'NodeLost';
  if (!a.node && (a.epoch ?? 0) > 0) return 'Pending'; // what its last node said is no longer so
  if (s.node && s.node !== a.node && (s.epoch ?? 0) < (a.epoch ?? 0)) return 'Moving';
  return s.phase || 'Pending';
}

export const phaseKey = (p: Phase): Key => `phase.${p}`;

/** note says what it does or why it does not. */
export const noteOf = ({ assignment: a = {}, status: s = {} }: Instance): string =>
  s.lastError || a.hold || (!a.node || a.nodeLost ? (a.reason ?? '') : (s.step ?? ''));

/** busy says that its state is about to change. */
export const busy = (p: Phase) => !['Running', 'Stopped', 'Failed', 'NodeLost'].includes(p);
