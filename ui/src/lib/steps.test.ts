import { expect, test } from 'vitest';
import { stepsOf } from './steps';

const base = { kind: 'Instance', meta: { name: 'a' }, spec: { flavor: 'f', image: 'i' } };
const states = (i: Parameters<typeof stepsOf>[0]) =>
  stepsOf(i)
    ?.map((s) => s.state)
    .join(' ');

test('how far the making of an instance is', () => {
  expect(states(base)).toBe('current waiting waiting waiting');
  const placed = { ...base, assignment: { node: 'n' } };
  expect(states(placed)).toBe('done current waiting waiting');
  expect(states({ ...placed, status: { phase: 'Creating', stepCause: { code: 'creating-volume' } } })).toBe(
    'done current waiting waiting',
  );
  expect(states({ ...placed, status: { phase: 'Creating', stepCause: { code: 'creating-gpu' } } })).toBe(
    'done done current waiting',
  );
  expect(states({ ...placed, status: { phase: 'Starting', stepCause: { code: 'starting' } } })).toBe(
    'done done done current',
  );
  expect(states({ ...placed, status: { phase: 'Failed', stepCause: { code: 'creating-volume' } } })).toBe(
    'done failed waiting waiting',
  );
});

test('what has run, is stopped or goes has no steps', () => {
  expect(stepsOf({ ...base, status: { phase: 'Running', startedAt: '2026-01-01T00:00:00Z' } })).toBeNull();
  expect(stepsOf({ ...base, status: { phase: 'Starting', startedAt: '2026-01-01T00:00:00Z' } })).toBeNull();
  expect(stepsOf({ ...base, spec: { ...base.spec, power: 'Stopped' } })).toBeNull();
  expect(stepsOf({ ...base, meta: { name: 'a', deletedAt: 'x' } })).toBeNull();
});
