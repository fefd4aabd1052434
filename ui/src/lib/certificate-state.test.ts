import { expect, test } from 'vitest';
import { certificateState } from './certificate-state';

const now = new Date('2026-06-01T00:00:00Z');
const later = '2026-07-01T00:00:00Z';
const before = '2026-05-01T00:00:00Z';
const said = (reason: string, status = false, message = '') => ({
  conditions: [{ type: 'CertificateReady', status, reason, message, since: before }],
});

test('a valid stored certificate is preferred', () => {
  expect(certificateState(said('Failed'), true, later, now)).toEqual({ state: 'stored', expiresAt: later });
  expect(certificateState(undefined, false, before, now)).toMatchObject({ state: 'expired', expiresAt: before });
});

test('an issued certificate is renewed, and a failure of that is shown', () => {
  const issued = { expiresAt: later, nextAt: later };
  expect(certificateState({ ...issued, ...said('Issued', true) }, true, undefined, now)).toEqual({
    state: 'issued',
    expiresAt: later,
    nextAt: later,
    problem: undefined,
  });
  const failed = certificateState({ ...issued, ...said('Failed', true, 'no route') }, true, before, now);
  expect(failed).toMatchObject({ state: 'renewing', expiresAt: later, problem: 'no route' });
});

test('without a valid certificate the last request decides', () => {
  const state = (reason: string) => certificateState(said(reason), true, undefined, now).state;
  expect(state('Failed')).toBe('failed');
  expect(state('RateLimited')).toBe('limited');
  expect(state('Requested')).toBe('requested');
  expect(certificateState({ expiresAt: before, ...said('Issued', true) }, true, undefined, now).state).toBe('expired');
  expect(certificateState(undefined, true, undefined, now).state).toBe('waiting');
  expect(certificateState(undefined, false, undefined, now).state).toBe('none');
});

test('while they are disabled nothing is requested', () => {
  const got = certificateState({ nextAt: later, ...said('Requested') }, false, undefined, now);
  expect(got).toMatchObject({ state: 'none', nextAt: undefined });
});
