import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import type { Draft } from './draft';
import { usualMachine } from './machine';
import { abilityOf, choose, fittingFlavor, imageOf, sourceOf } from './source';

const draft: Draft = {
  name: '',
  project: '',
  app: '',
  image: '',
  medium: '',
  second: '',
  rootGib: '',
  flavor: '',
  vgpu: false,
  pool: '',
  model: '',
  vramGib: '4',
  share: '25',
  tier: '' as const,
  networks: [],
  groups: [],
  keys: '',
  userData: '',
  password: '',
  machine: usualMachine,
  storagePool: '',
  whenFull: 'queue',
  until: '',
};
const app = (name: string, vramBytes = 0): Schemas['App'] => ({
  kind: 'App',
  meta: { name },
  spec: { displayName: name, version: '1', image: 'debian-13', needs: { vramBytes } },
});
const image = (name: string, open: boolean): Schemas['Image'] => ({
  kind: 'Image',
  meta: { name },
  spec: { format: 'qcow2', public: open },
});

test('a medium and an image exclude each other', () => {
  const medium = choose(choose(draft, 'image:debian', []), 'medium:windows', []);
  expect(medium).toMatchObject({ image: '', medium: 'windows' });
  expect(sourceOf(medium)).toBe('medium:windows');
  expect(choose(medium, 'image:debian', [])).toMatchObject({ image: 'debian', medium: '' });
});

test('an app and an image put each other out', () => {
  const apps = [app('jupyter')];
  const a = choose({ ...draft, image: 'debian-12' }, 'app:jupyter', apps);
  expect([a.app, a.image, a.vgpu, sourceOf(a)]).toEqual(['jupyter', '', false, 'app:jupyter']);
  const i = choose(a, 'image:debian-12', apps);
  expect([i.app, i.image, sourceOf(i)]).toEqual(['', 'debian-12', 'image:debian-12']);
  expect(sourceOf(choose(i, '', apps))).toBe('');
});

test('an app gets the VRAM that it needs, and keeps more', () => {
  const apps = [app('vllm', 8 * 2 ** 30)];
  expect(choose(draft, 'app:vllm', apps)).toMatchObject({ vgpu: true, vramGib: '8' });
  expect(choose({ ...draft, vramGib: '24' }, 'app:vllm', apps)).toMatchObject({ vgpu: true, vramGib: '24' });
});

test('an app is made from a public image', () => {
  expect(imageOf(app('a'), [image('debian-13', false)])).toBeUndefined();
  expect(imageOf(app('a'), [image('debian-12', true), image('debian-13', true)])?.meta.name).toBe('debian-13');
});

test('what is known of an image that cannot use a virtual GPU', () => {
  const image = (vgpu?: 'supported' | 'new-kernel' | 'unsupported') =>
    ({ meta: { name: 'x' }, spec: { format: 'raw', abilities: { vgpu } } }) as Schemas['Image'];
  const unable = app('bench');
  unable.spec.abilities = { vgpu: 'unsupported' };
  expect(abilityOf(undefined, image())).toBeUndefined();
  expect(abilityOf(undefined, image('supported'))).toBeUndefined();
  expect(abilityOf(undefined, image('new-kernel'))).toBe('new-kernel');
  expect(abilityOf(unable, image())).toBe('unsupported');
  expect(abilityOf(unable, image('supported'))).toBeUndefined();
});

test('an app gets the smallest flavor that has what it needs', () => {
  const gib = 2 ** 30;
  const flavor = (name: string, vcpus: number, memory: number, root: number): Schemas['Flavor'] => ({
    kind: 'Flavor',
    meta: { name },
    spec: { vcpus, memoryBytes: memory * gib, rootBytes: root * gib },
  });
  const flavors = [
    flavor('huge', 16, 64, 100),
    flavor('fits', 4, 16, 40),
    flavor('thin', 4, 8, 40),
    flavor('tiny', 1, 1, 40),
    flavor('short', 4, 16, 10),
  ];
  const vllm = app('vllm');
  vllm.spec.needs = { vcpus: 4, memoryBytes: 16 * gib, rootBytes: 40 * gib };
  expect(fittingFlavor(vllm, flavors)?.meta.name).toBe('fits');
  expect(choose({ ...draft, flavor: 'tiny' }, 'app:vllm', [vllm], flavors).flavor).toBe('fits');
  // None fits: the choice is the user's.
  expect(choose({ ...draft, flavor: 'tiny' }, 'app:vllm', [vllm], flavors.slice(2)).flavor).toBe('tiny');
  expect(choose({ ...draft, flavor: 'tiny' }, 'image:debian', [vllm], flavors).flavor).toBe('tiny');
});
