import { expect, test } from 'vitest';
import { said } from '../api/fake';
import { hrefOf, keyOf, type Alert } from './alert';

const alert = (a: Partial<Alert>): Alert => ({
  code: 'node.lost',
  severity: 'Critical',
  kind: 'Node',
  message: said(''),
  ...a,
});

test('an alert leads to what it is about', () => {
  expect(hrefOf(alert({ id: 'node-1' }))).toBe('/nodes/node-1');
  expect(hrefOf(alert({ code: 'cluster.quorum' }))).toBe('/nodes');
  expect(hrefOf(alert({ kind: 'Instance', id: 'ins-1' }))).toBe('/instances/ins-1');
  expect(hrefOf(alert({ kind: 'Webhook', id: 'hook-1' }))).toBe('/webhooks/hook-1');
  expect(hrefOf(alert({ kind: 'Dispute', id: 'dsp-1' }))).toBe('/disputes');
  expect(hrefOf(alert({ kind: 'MailSuppression', id: 'msup-1' }))).toBe('/mail-suppressions');
  expect(hrefOf(alert({ kind: 'Nonsense', id: 'x' }))).toBeUndefined();
});

test('keys tell alerts apart', () => {
  expect(keyOf(alert({ id: 'a' }))).not.toBe(keyOf(alert({ id: 'b' })));
});
