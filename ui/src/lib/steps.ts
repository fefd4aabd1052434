// The progress of an instance's creation.
import type { Schemas } from '../api/client';

type Instance = Schemas['Instance'];

export const stepNames = ['place', 'disk', 'machine', 'start'] as const;
export interface Step {
  name: (typeof stepNames)[number];
  state: 'done' | 'current' | 'waiting' | 'failed';
}

/** stepsOf returns the steps of an instance that has never run; nothing once it has, or if it is not to run. */
export function stepsOf({ meta, spec, assignment: a = {}, status: s = {} }: Instance): Step[] | null {
  const { phase = 'Pending' } = s;
  if (
    meta.deletedAt ||
    spec.power === 'Stopped' ||
    s.startedAt ||
    (s.restarts ?? 0) > 0 ||
    !['Pending', 'Creating', 'Starting', 'Failed'].includes(phase)
  )
    return null;
  // creating-volume: its image is downloaded, and copied or grown.
  const at = !a.node
    ? 0
    : phase === 'Starting'
      ? 3
      : phase === 'Pending' || s.stepCause === undefined || s.stepCause.code === 'creating-volume'
        ? 1
        : 2;
  return stepNames.map((name, i) => ({
    name,
    state: i < at ? 'done' : i > at ? 'waiting' : phase === 'Failed' ? 'failed' : 'current',
  }));
}
