import { expect, test } from 'vitest';
import type { Instance } from '../api/client';
import { sshTo, userOf } from './access';

test('the default user is known of distributions whose user has their name', () => {
  expect(['debian-13', 'Ubuntu 24.04', 'rocky9', 'debian'].map(userOf)).toEqual([
    'debian',
    'ubuntu',
    'rocky',
    'debian',
  ]);
  expect(['our-debian', 'archive', 'windows'].map(userOf)).toEqual([undefined, undefined, undefined]);
});

const instance = (keys: string[], addresses: object[]): Instance => ({
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'demo' },
  spec: { flavor: 'tiny', sshKeys: keys },
  assignment: { ports: addresses.map((a) => ({ network: 'net-1', mac: '02:00:00:00:00:01', ...a })) },
});

test('ssh needs a key and an address, and goes by the floating IP', () => {
  const at = [{ address4: '10.0.0.5', address6: 'fd00::5' }];
  const ips = [
    { spec: {}, assignment: { address: '192.0.2.1' } },
    { spec: { instance: 'ins-1' }, assignment: { address: '192.0.2.9' } },
  ];
  expect(sshTo(instance([], at), 'debian', ips)).toBeUndefined();
  expect(sshTo(instance(['ssh-ed25519 A'], []), 'debian', [])).toBeUndefined();
  expect(sshTo(instance(['ssh-ed25519 A'], at), 'debian', ips)).toEqual({
    command: 'ssh debian@192.0.2.9',
    outside: true,
  });
  expect(sshTo(instance(['ssh-ed25519 A'], at), undefined, [])).toEqual({
    command: 'ssh USER@10.0.0.5',
    outside: false,
  });
  expect(sshTo(instance(['ssh-ed25519 A'], [{ address6: 'fd00::5' }]), 'ubuntu', [])?.command).toBe(
    'ssh ubuntu@fd00::5',
  );
});
