import { expect, test } from 'vitest';
import { amountsOf, draftQuota } from './quota';

test('quotas survive their form; 0 is a limit, empty is none', () => {
  const amounts = { vcpus: 8, memoryBytes: 1.5 * 2 ** 30, floatingIPs: 0 };
  expect(draftQuota(amounts)).toMatchObject({ vcpus: '8', memoryBytes: '1.5', floatingIPs: '0', instances: '' });
  expect(amountsOf(draftQuota(amounts))).toEqual(amounts);
});
