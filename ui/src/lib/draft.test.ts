import { expect, test } from 'vitest';
import { gib, instanceOf, letsIn, missing } from './draft';
import { usualMachine } from './machine';

const draft = {
  name: ' demo ',
  project: 'web',
  app: '',
  image: 'debian',
  medium: '',
  second: '',
  rootGib: '',
  flavor: 'small',
  vgpu: false,
  pool: '',
  model: '',
  vramGib: '1.5',
  share: '50',
  tier: '' as const,
  networks: [] as string[],
  groups: [] as string[],
  keys: '\n ssh-ed25519 AAAA a \n\n',
  userData: '',
  password: '',
  machine: usualMachine,
  storagePool: '',
  whenFull: 'queue' as const,
  until: '',
};

test('a tier that is not the standard one is said', () => {
  expect(instanceOf({ ...draft, vgpu: true, tier: 'premium' }).spec.vgpu?.tier).toBe('premium');
  expect(instanceOf({ ...draft, vgpu: true }).spec.vgpu).not.toHaveProperty('tier');
});

test('a share of 0 is best effort, which the API calls no share', () => {
  expect(instanceOf({ ...draft, vgpu: true, share: '0' }).spec.vgpu).toEqual({ vramBytes: 1_610_612_736 });
});

test('only what was filled in is sent', () => {
  expect(instanceOf({ ...draft, keys: '' })).toEqual({
    kind: 'Instance',
    meta: { name: 'demo', project: 'web' },
    spec: { flavor: 'small', image: 'debian' },
  });
  expect(
    instanceOf({ ...draft, vgpu: true, networks: ['back', 'front'], groups: ['web'], userData: '#cloud-config' }).spec,
  ).toEqual({
    flavor: 'small',
    image: 'debian',
    vgpu: { vramBytes: 1_610_612_736, sharePercent: 50 },
    networks: [
      { network: 'back', securityGroups: ['web'] },
      { network: 'front', securityGroups: ['web'] },
    ],
    sshKeys: ['ssh-ed25519 AAAA a'],
    userData: '#cloud-config',
  });
});

test('groups without a network are of the default one’s port', () => {
  expect(instanceOf({ ...draft, groups: ['web'] }).spec.networks).toEqual([
    { network: 'default', securityGroups: ['web'] },
  ]);
});

test('an app stands for its image', () => {
  expect(instanceOf({ ...draft, keys: '', app: 'jupyter', image: '' }).spec).toEqual({
    flavor: 'small',
    app: 'jupyter',
  });
});

test('a password joins the user data, or the app’s', () => {
  expect(instanceOf({ ...draft, password: 'x' }).spec.userData).toContain('password: "x"');
  expect(
    instanceOf({ ...draft, app: 'jupyter', password: 'x' }, '#cloud-config\nruncmd: [ls]').spec.userData,
  ).toContain('runcmd: [ls]\npassword: "x"');
  expect(instanceOf({ ...draft, app: 'jupyter' }, '#cloud-config').spec.userData).toBeUndefined();
});

test('all that is missing is named at once', () => {
  expect(missing({ ...draft, name: ' ', image: '', flavor: '', vgpu: true, vramGib: '' })).toEqual([
    'meta.name',
    'spec.image',
    'spec.flavor',
    'spec.vgpu.vramBytes',
  ]);
  expect(missing({ ...draft, image: '', app: 'jupyter' })).toEqual([]);
});

test('who can log in', () => {
  const none = { ...draft, keys: '' };
  expect(letsIn(instanceOf(none))).toBe(false);
  expect(letsIn(instanceOf({ ...none, userData: '#cloud-config\nruncmd: [ls]' }))).toBe(false);
  expect(letsIn(instanceOf(draft))).toBe(true);
  expect(letsIn(instanceOf({ ...none, password: 'x' }))).toBe(true);
  expect(letsIn(instanceOf({ ...none, userData: '#cloud-config\nssh_import_id: [gh:me]' }))).toBe(true);
  expect(letsIn(instanceOf({ ...none, app: 'lab' }), '#cloud-config\nssh_authorized_keys: [x]')).toBe(true);
  expect(
    letsIn(instanceOf({ ...none, app: 'lab', userData: '#cloud-config' }), '#cloud-config\nssh_authorized_keys: [x]'),
  ).toBe(false);
});

test('the root volume may have a pool of its own', () => {
  expect(instanceOf({ ...draft, storagePool: 'fast' }).spec.storagePool).toBe('fast');
  expect(instanceOf(draft).spec).not.toHaveProperty('storagePool');
});

test('the machine is a part of the instance', () => {
  const machine = { ...usualMachine, cpuPolicy: 'dedicated', hugePages: '1Gi' } as const;
  expect(instanceOf({ ...draft, machine }).spec).toMatchObject({ cpuPolicy: 'dedicated', hugePages: '1Gi' });
  expect(instanceOf({ ...draft, machine, vgpu: true }).spec).not.toHaveProperty('hugePages');
});

test('a deadline is sent in UTC, and only while one is wanted', () => {
  const until = '2030-01-02T03:04'; // local time
  const want = new Date(2030, 0, 2, 3, 4).toISOString().replace('.000Z', 'Z');
  expect(instanceOf({ ...draft, whenFull: 'until', until }).spec.queueUntil).toBe(want);
  for (const d of [
    { ...draft, until },
    { ...draft, whenFull: 'until' as const, until: '' },
  ]) {
    expect(instanceOf(d).spec).not.toHaveProperty('queueUntil');
    expect(instanceOf(d).spec).not.toHaveProperty('whenFull');
  }
  expect(instanceOf({ ...draft, whenFull: 'refuse', until }).spec).toMatchObject({ whenFull: 'Refuse' });
  expect(instanceOf({ ...draft, whenFull: 'refuse', until }).spec).not.toHaveProperty('queueUntil');
});

test('a system that is installed from media', () => {
  const from = { ...draft, image: '', medium: 'windows', second: 'virtio-win', rootGib: '64', keys: '' };
  const { spec } = instanceOf(from);
  expect(spec).toMatchObject({ media: ['windows', 'virtio-win'], rootBytes: 64 * gib });
  expect(spec).not.toHaveProperty('image');
  expect(missing(from)).not.toContain('spec.image');
  expect(letsIn(instanceOf(from))).toBe(true);
  expect(instanceOf({ ...from, second: '', rootGib: '' }).spec).toMatchObject({ media: ['windows'] });
  expect(instanceOf({ ...from, rootGib: '' }).spec).not.toHaveProperty('rootBytes');
});
