import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { balanceOf, reasonOf, standingOf } from './organization';

type Organization = Schemas['Organization'];
const org = (spec: Organization['spec'], status?: Organization['status']): Organization => ({
  kind: 'Organization',
  meta: { name: 'acme' },
  spec,
  status,
});
const billing = (state: 'ok' | 'warn' | 'stop' | 'suspended') => ({
  billing: { state, since: '2026-01-01T00:00:00Z', message: `it is ${state}` },
});

test('the worst that holds', () => {
  expect(standingOf(org({}))).toBe('active');
  expect(standingOf(org({}, billing('warn')))).toBe('warn');
  expect(standingOf(org({}, billing('stop')))).toBe('restricted');
  expect(standingOf(org({ restricted: { reason: 'budget' } }, billing('ok')))).toBe('restricted');
  expect(standingOf(org({ suspended: { reason: 'spam' } }, billing('warn')))).toBe('suspended');
  expect(standingOf({ ...org({ suspended: {} }), meta: { name: 'acme', deletedAt: '2026-01-01T00:00:00Z' } })).toBe(
    'deleting',
  );
});

test('and why', () => {
  expect(reasonOf(org({ suspended: { reason: 'spam' } }, billing('warn')))).toBe('spam');
  expect(reasonOf(org({}, billing('warn')))).toBe('it is warn');
  expect(reasonOf(org({}, billing('ok')))).toBe('');
});

test('what is due is positive, and a wallet is of who pays in advance', () => {
  expect(balanceOf(-2_102_400_000, 'invoice')).toEqual({ key: 'cust.due', micros: 2_102_400_000 });
  expect(balanceOf(0, 'invoice')).toEqual({ key: 'cust.due', micros: 0 });
  expect(balanceOf(5_000_000, 'invoice')).toEqual({ key: 'cust.balance', micros: 5_000_000 });
  expect(balanceOf(-5_000_000, 'prepaid')).toEqual({ key: 'cust.wallet', micros: -5_000_000 });
  expect(balanceOf(-5_000_000)).toEqual({ key: 'cust.due', micros: 5_000_000 });
});
