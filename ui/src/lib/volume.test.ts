import { expect, test } from 'vitest';
import { newVolume, placeOf, volumeOf, volumeState } from './volume';

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
