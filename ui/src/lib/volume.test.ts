import { expect, test } from 'vitest';
import { migratable, newVolume, placeOf, volumeOf, volumeState } from './volume';

test('a draft becomes what is sent', () => {
  expect(volumeOf({ ...newVolume(), name: ' data ' }, 'p').spec).toEqual({ sizeBytes: 10 * 2 ** 30 });
  expect(volumeOf({ ...newVolume('snapshot:snap-1', 'ins-1'), name: 'data', pool: 'ceph' }, 'p')).toEqual({
    kind: 'Volume',
    meta: { name: 'data', project: 'p' },
    spec: { snapshot: 'snap-1', instance: 'ins-1' },
  });
  expect(
    volumeOf(
      { ...newVolume('image:img-1'), encrypted: true, readIOPS: '100', writeRate: { number: '5', unit: 'MiB' } },
      'p',
    ).spec,
  ).toEqual({
    image: 'img-1',
    encrypted: true,
    qos: { readIOPS: 100, writeBytesPerSecond: 5 * 2 ** 20 },
  });
});

const volume = (spec: object, status: object = {}) => ({
  kind: 'Volume',
  meta: { name: 'v' },
  spec,
  status: { phase: 'Ready' as const, ...status },
});

test('where a volume is', () => {
  expect(placeOf(volume({}))).toEqual({ instance: '', doing: '' });
  expect(placeOf(volume({ instance: 'i' }, { attached: 'i' }))).toEqual({ instance: 'i', doing: '' });
  expect(placeOf(volume({}, { attached: 'i' }))).toEqual({ instance: 'i', doing: 'detaching' });
});

test('a rollback shows until it is done', () => {
  expect(volumeState(volume({ rollback: { snapshot: 's', count: 2 } }, { rollbacks: 1 }))).toBe('RollingBack');
  expect(volumeState(volume({ rollback: { snapshot: 's', count: 2 } }, { rollbacks: 2 }))).toBe('Ready');
});

test('which volumes can be migrated', () => {
  const on = (pool: string, spec: object = {}, status: object = {}) => ({
    ...volume(spec, status),
    assignment: { node: 'node-1', pool },
  });
  expect(migratable(on('local'))).toBe(true);
  expect(migratable(on('fast'))).toBe(true);
  expect(migratable(on('ceph-ssd'))).toBe(false);
  expect(migratable(on('shared'))).toBe(false);
  expect(migratable(on('local', { instance: 'ins-1' }))).toBe(false);
  expect(migratable(on('local', {}, { attached: 'ins-1' }))).toBe(false);
  expect(migratable(on('local', { root: true }))).toBe(false);
  expect(migratable(volume({}))).toBe(false);
});
