import { expect, test } from 'vitest';
import { machineSpec, policyIn, policyOf, usualMachine } from './machine';

test('a usual machine sends nothing', () => expect(machineSpec(usualMachine, false)).toEqual({}));

test('what was chosen is sent', () => {
  const m = { os: 'windows', cpu: 'host', cpuPolicy: 'dedicated', hugePages: '1Gi', firmware: 'uefi' } as const;
  expect(machineSpec({ ...m, secureBoot: true, tpm: true }, false)).toEqual({ ...m, secureBoot: true, tpm: true });
});

test('what the form does not show is not sent', () => {
  expect(machineSpec({ ...usualMachine, hugePages: '2Mi' }, true)).toEqual({});
  expect(machineSpec({ ...usualMachine, secureBoot: true, tpm: true }, false)).toEqual({});
});

test.each([
  [undefined, 'dedicated', 'shared'],
  ['shared', 'dedicated', 'shared'],
  ['optional', '', 'shared'],
  ['optional', 'dedicated', 'dedicated'],
  ['dedicated', '', 'dedicated'],
] as const)('the policy of a flavor (%s) and an instance (%s) is %s', (flavor, own, want) => {
  expect(policyOf(own, { vcpus: 1, memoryBytes: 1, cpuPolicy: flavor })).toBe(want);
});

test('a policy is kept in a flavor that leaves it to instances', () => {
  const flavor = { vcpus: 1, memoryBytes: 1 };
  expect(policyIn('dedicated', { ...flavor, cpuPolicy: 'optional' })).toBe('dedicated');
  expect(policyIn('dedicated', { ...flavor, cpuPolicy: 'dedicated' })).toBe('');
  expect(policyIn('dedicated', flavor)).toBe('');
});
