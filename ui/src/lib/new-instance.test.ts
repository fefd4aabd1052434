import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import type { Draft } from './draft';
import { asked, newWithApp, newWithGpu, renamed, usualImage } from './new-instance';
import { smallest } from './source';

const part = (address: string) => address.replace('/instances/new/', '');

test('links choose an app or a GPU', () => {
  expect(asked(part(newWithApp('jupyter')))).toEqual({ app: 'jupyter' });
  expect(asked(part(newWithGpu({ pool: 'default', model: 'NVIDIA L4: new/1' })))).toEqual({
    gpu: { pool: 'default', model: 'NVIDIA L4: new/1' },
  });
  for (const other of ['', 'jupyter', 'gpu:', 'gpu:default:']) expect(asked(other)).toEqual({});
});

const image = (name: string, createdAt: string, spec: object = {}) =>
  ({ kind: 'Image', meta: { name, createdAt }, spec: { public: true, ...spec } }) as Schemas['Image'];

test('the newest public image that can have a GPU', () => {
  const all = [
    image('old', '2026-01-01T00:00:00Z'),
    image('new', '2026-03-01T00:00:00Z'),
    image('own', '2026-04-01T00:00:00Z', { public: false }),
    image('medium', '2026-05-01T00:00:00Z', { format: 'iso' }),
    image('router', '2026-06-01T00:00:00Z', { abilities: { vgpu: 'unsupported' } }),
  ];
  expect(usualImage(all)?.meta.name).toBe('new');
  expect(usualImage([])).toBeUndefined();
});

test('the smallest flavor, with room for the image', () => {
  const flavor = (name: string, vcpus: number, memoryBytes: number, rootBytes = 0) =>
    ({ meta: { name }, spec: { vcpus, memoryBytes, rootBytes } }) as Schemas['Flavor'];
  const all = [flavor('c', 2, 1), flavor('b', 1, 9), flavor('a', 1, 8, 100)];
  expect(smallest(all)?.meta.name).toBe('a');
  const large = { ...image('debian', ''), status: { virtualBytes: 200 } } as Schemas['Image'];
  expect(smallest(all, large)?.meta.name).toBe('b');
  expect(smallest([flavor('a', 1, 8, 100)], large)).toBeUndefined();
});

test('a name is suggested until one is typed', () => {
  const draft = (d: Partial<Draft>) => ({ name: '', app: '', image: '', medium: '', ...d }) as Draft;
  const first = renamed(draft({}), draft({ image: '22.04_Ubuntu' }), 'x7k2');
  expect(first.name).toBe('ubuntu-x7k2');
  expect(renamed(first, { ...first, image: '', app: 'jupyter' }, 'x7k2').name).toBe('jupyter-x7k2');
  const typed = { ...first, name: 'mine' };
  expect(renamed(typed, { ...typed, app: 'jupyter' }, 'x7k2').name).toBe('mine');
  expect(renamed(draft({}), draft({ image: '7' }), 'x7k2').name).toBe('instance-x7k2');
  expect(renamed(draft({}), draft({ image: `a${'-b'.repeat(60)}` }), 'x7k2').name.length).toBeLessThanOrEqual(63);
});
