import { expect, test } from 'vitest';
import { flags, limitsOf, quotaForm, wrong } from './quota';

const gib = 2 ** 30;

test('sizes are shown in GiB and sent in bytes', () => {
  const limits = { vcpus: 16, memoryBytes: 64 * gib, volumeBytes: gib / 2, gpuSharePercent: 150 };
  const form = quotaForm(limits);
  expect(form).toMatchObject({
    vcpus: '16',
    memoryBytes: '64',
    volumeBytes: '0.5',
    gpuSharePercent: '150',
    instances: '',
  });
  expect(limitsOf(form)).toEqual(limits);
});

test('nothing is no limit, and 0 is one', () => {
  expect(limitsOf(quotaForm())).toEqual({});
  expect(limitsOf({ ...quotaForm(), instances: '0' })).toEqual({ instances: 0 });
});

test('what is no number is said', () => {
  expect(wrong({ ...quotaForm(), vcpus: '-1', memoryBytes: '1,5', vramBytes: 'lots' })).toEqual(['vcpus', 'vramBytes']);
});

test('the command has the same', () => {
  expect(flags({ vcpus: 16, memoryBytes: 64 * gib, volumeBytes: 5 })).toEqual([
    '--quota vcpus=16',
    '--quota memoryBytes=64GiB',
    '--quota volumeBytes=5',
  ]);
});

test('what the form does not show stays', () => {
  expect(limitsOf({ ...quotaForm(), vcpus: '4' }, { vcpus: 2, instances: 3, networks: 9 })).toEqual({
    vcpus: 4,
    networks: 9,
  });
});
