import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { balancerForm, balancerSpec, emptyBalancer } from './balancer';
import { balancerCommand } from './commands';

const balancer: Schemas['LoadBalancer'] = {
  kind: 'LoadBalancer',
  meta: { name: 'web', project: 'shop' },
  spec: {
    network: 'net-1',
    protocol: 'udp',
    port: 53,
    floatingIP: 'fip-1',
    backends: [{ instance: 'ins-1', port: 5353 }],
  },
};

test('a form sends back what it was filled from', () => {
  expect(balancerSpec(balancerForm(balancer))).toEqual(balancer.spec);
});

test('ids are told as names', () => {
  const names: Record<string, string> = { 'net-1': 'default', 'ins-1': 'dns-1' };
  expect(balancerSpec(balancerForm(balancer), (id) => names[id] ?? id)).toMatchObject({
    network: 'default',
    floatingIP: 'fip-1',
    backends: [{ instance: 'dns-1' }],
  });
});

test('a change as a command says what is taken away', () => {
  const after = {
    ...balancer,
    meta: { ...balancer.meta, name: 'dns' },
    spec: { ...balancerSpec({ ...emptyBalancer, network: 'net-1', health: false, backends: [] }) },
  };
  expect(balancerCommand(after, 'web').replace(/\s*\\\n\s*/g, ' ')).toBe(
    'basalt load-balancer set web --name dns --project shop --protocol tcp --port 80 --no-backends --health=false --inside',
  );
  expect(balancerCommand(balancer).replace(/\s*\\\n\s*/g, ' ')).toBe(
    'basalt load-balancer create web --project shop --network net-1 --protocol udp --port 53 --backend ins-1:5353 --floating-ip fip-1',
  );
});
