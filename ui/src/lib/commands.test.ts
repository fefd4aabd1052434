import { expect, test } from 'vitest';
import { balancerCommand, floatingCommand, groupCommand, networkCommand, volumeCommand } from './commands';

const meta = { name: 'x', project: 'render' };

test('forms as commands', () => {
  expect(
    volumeCommand({
      kind: 'Volume',
      meta,
      spec: { sizeBytes: 10 * 2 ** 30, encrypted: true, qos: { readIOPS: 100, writeBytesPerSecond: 2 ** 20 } },
    }).replaceAll(' \\\n  ', ' '),
  ).toBe('basalt volume create x --project render --size 10GiB --encrypted --read-iops 100 --write-rate 1MiB');
  expect(
    networkCommand({
      kind: 'Network',
      meta,
      spec: { cidr4: '10.20.0.0/24', isolated: true, dnsServers: ['1.1.1.1', '9.9.9.9'] },
    }).replaceAll(' \\\n  ', ' '),
  ).toBe('basalt network create x --project render --cidr4 10.20.0.0/24 --dns 1.1.1.1,9.9.9.9 --isolated');
  const rules = [
    { direction: 'ingress' as const, protocol: 'tcp' as const, ports: '443', cidr: '0.0.0.0/0' },
    { direction: 'egress' as const, protocol: 'any' as const, group: 'sg-1' },
  ];
  expect(
    groupCommand('set', { kind: 'SecurityGroup', meta, spec: { rules } }, () => 'web').replaceAll(' \\\n  ', ' '),
  ).toBe(
    `basalt security-group set x --project render --allow 'ingress tcp 443 from 0.0.0.0/0' --allow 'egress any to group web'`,
  );
  expect(floatingCommand({ kind: 'FloatingIP', meta, spec: { instance: 'web-1' } }).replaceAll(' \\\n  ', ' ')).toBe(
    'basalt floating-ip create x --project render --instance web-1',
  );
  expect(
    balancerCommand({
      kind: 'LoadBalancer',
      meta,
      spec: {
        network: 'default',
        protocol: 'tcp',
        port: 80,
        backends: [{ instance: 'web-1', port: 8080 }],
        health: true,
      },
    }).replaceAll(' \\\n  ', ' '),
  ).toBe(
    'basalt load-balancer create x --project render --network default --protocol tcp --port 80 --backend web-1:8080 --health',
  );
});
