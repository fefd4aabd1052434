// An instance's state in one word, as in `basalt instance list`.
import type { Schemas } from '../api/client';
import type { Key } from '../i18n';
import { told, type Told } from './cause';

type Instance = Schemas['Instance'];
export type Phase = NonNullable<NonNullable<Instance['status']>['phase']> | 'NodeLost' | 'Moving';

/** phases are all states, in the order of an instance's life. */
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
  if (!a.node && (a.epoch ?? 0) > 0) return 'Pending'; // the status of its last node is out of date
  if (s.node && s.node !== a.node && (s.epoch ?? 0) < (a.epoch ?? 0)) return 'Moving';
  return s.phase || 'Pending';
}

export const phaseKey = (p: Phase): Key => `phase.${p}`;

/** noteOf returns what an instance is doing, or why it does not run. */
export function noteOf({ assignment: a = {}, status: s = {} }: Instance): Told {
  if (s.lastError) return told(s.lastError, s.cause);
  if (a.hold) return told(a.hold, { code: 'suspended', plain: true });
  return !a.node || a.nodeLost ? told(a.reason, a.cause) : told(s.step, s.stepCause);
}

/** busy reports whether the state is about to change. */
export const busy = (p: Phase) => !['Running', 'Stopped', 'Failed', 'NodeLost'].includes(p);
