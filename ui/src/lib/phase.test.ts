import { expect, test } from 'vitest';
import { said } from '../api/fake';
import { noteOf, phaseOf } from './phase';

const base = { kind: 'Instance', meta: { name: 'a' }, spec: { flavor: 'f', image: 'i' } };

test('states, as the command line says them', () => {
  expect(phaseOf(base)).toBe('Pending');
  expect(phaseOf({ ...base, assignment: { node: 'n' }, status: { phase: 'Running', node: 'n' } })).toBe('Running');
  expect(phaseOf({ ...base, assignment: { node: '', epoch: 2 }, status: { phase: 'Running', node: 'n' } })).toBe(
    'Pending',
  );
  expect(
    phaseOf({ ...base, assignment: { node: 'm', epoch: 2 }, status: { phase: 'Running', node: 'n', epoch: 1 } }),
  ).toBe('Moving');
  expect(phaseOf({ ...base, assignment: { node: 'n', nodeLost: true }, status: { phase: 'Running' } })).toBe(
    'NodeLost',
  );
  expect(
    phaseOf({ ...base, meta: { name: 'a', deletedAt: '2026-01-01T00:00:00Z' }, status: { phase: 'Running' } }),
  ).toBe('Deleting');
});

test('a note says why', () => {
  expect(noteOf({ ...base, assignment: { reason: said('no room'), cause: { code: 'no-room' } } })).toEqual({
    text: 'no room',
    cause: { code: 'no-room' },
  });
  expect(noteOf({ ...base, assignment: { node: 'n' }, status: { step: said('boot') } }).text).toBe('boot');
  expect(
    noteOf({ ...base, assignment: { node: 'n' }, status: { step: said('boot'), lastError: said('broken') } }).text,
  ).toBe('broken');
  expect(noteOf({ ...base, assignment: { hold: 'organization o is suspended: spam' } }).cause?.code).toBe('suspended');
});
