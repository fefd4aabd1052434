import { expect, test } from 'vitest';
import { draftOf, newRule, ruleOf } from './rule';

test('a rule survives its editor', () => {
  for (const r of [
    { direction: 'ingress' as const, protocol: 'tcp' as const, ports: '8000-8080', cidr: '192.0.2.0/24' },
    { direction: 'egress' as const, protocol: 'any' as const },
    { direction: 'ingress' as const, protocol: 'udp' as const, ports: '53', group: 'sg-1' },
  ])
    expect(ruleOf(draftOf(r))).toEqual(r);
});

test('what a protocol does not have is not sent', () => {
  expect(ruleOf({ ...newRule(), protocol: 'icmp', ports: '80', cidr: 'x' })).toEqual({
    direction: 'ingress',
    protocol: 'icmp',
  });
});
