import { expect, test } from 'vitest';
import { withParams } from './address';
import { auditParams, auditQuery, narrowed, type AuditParams } from './audit';

const none = Object.fromEntries(auditParams.map((n) => [n, ''])) as AuditParams;

test('the address becomes a question', () => {
  expect(
    auditQuery({ ...none, actor: ' ann@example.com ', removed: 'true', from: '2026-03-01T10:00', order: 'oldest' }),
  ).toEqual({
    organization: '',
    oldest: true,
    actor: 'ann@example.com',
    operation: '',
    kind: '',
    object: '',
    removed: true,
    from: '2026-03-01T10:00:00.000Z',
    to: undefined,
  });
});

test('what is no time, and what is no yes, are left out', () => {
  const q = auditQuery({ ...none, from: '<script>', to: '2026-13-45T99:99', removed: 'yes', order: 'sideways' });
  expect([q.from, q.to, q.removed, q.oldest]).toEqual([undefined, undefined, undefined, undefined]);
});

test('the order and the organization narrow nothing', () => {
  expect(narrowed({ ...none, organization: 'org-1', order: 'oldest' })).toBe(false);
  expect(narrowed({ ...none, object: 'web-1' })).toBe(true);
});

test('several values of an address are set at once, and others stay', () => {
  expect(withParams('#/audit?actor=ann&x=1', { actor: '', object: 'a&b=c' })).toBe('#/audit?x=1&object=a%26b%3Dc');
});
