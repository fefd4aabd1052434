import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { command, curl } from './command';
import { quote, sizeFlag } from './shell';

const instance = {
  kind: 'Instance',
  meta: { name: 'demo', project: 'web' },
  spec: {
    flavor: 'small',
    image: 'debian',
    vgpu: { vramBytes: 2 ** 30, sharePercent: 50 },
    networks: [{ network: 'back' }],
  },
};

test('the command', () => {
  expect(command(instance)).toBe(
    [
      'basalt instance create demo',
      '--project web',
      '--image debian',
      '--flavor small',
      '--vram 1GiB',
      '--gpu-share 50',
      '--network back',
    ].join(' \\\n  '),
  );
});

test('the command with security groups', () => {
  expect(
    command({
      ...instance,
      spec: { flavor: 'small', image: 'debian', networks: [{ network: 'back', securityGroups: ['web', 'db'] }] },
    }),
  ).toContain('--network back \\\n  --security-group web,db');
});

test('the command of an app', () => {
  expect(command({ ...instance, spec: { flavor: 'small', app: 'jupyter' } })).toBe(
    ['basalt instance create demo', '--project web', '--app jupyter', '--flavor small'].join(' \\\n  '),
  );
});

test('the command of an installation from a medium', () => {
  const spec = { flavor: 'small', media: ['windows', 'virtio-win'], rootBytes: 64 * 2 ** 30 };
  expect(command({ ...instance, spec })).toBe(
    [
      'basalt instance create demo',
      '--project web',
      '--cdrom windows',
      '--cdrom virtio-win',
      '--root-size 64GiB',
      '--flavor small',
    ].join(' \\\n  '),
  );
});

test('the command of a special machine that does not wait', () => {
  const spec = {
    flavor: 'small',
    image: 'debian',
    storagePool: 'fast',
    os: 'windows',
    cpu: 'host',
    cpuPolicy: 'dedicated',
    hugePages: '1Gi',
    firmware: 'uefi',
    secureBoot: true,
    tpm: true,
    whenFull: 'Refuse',
  } as const;
  expect(command({ ...instance, spec })).toBe(
    [
      'basalt instance create demo',
      '--project web',
      '--image debian',
      '--flavor small',
      '--storage-pool fast',
      '--os windows',
      '--cpu host',
      '--cpu-policy dedicated',
      '--huge-pages 1Gi',
      '--firmware uefi',
      '--secure-boot',
      '--tpm',
      '--no-queue',
    ].join(' \\\n  '),
  );
});

test('a deadline needs a document, as the command knows a duration only', () => {
  const text = command({ ...instance, spec: { ...instance.spec, queueUntil: '2030-01-02T03:04:00Z' } });
  expect(text).toContain('"queueUntil": "2030-01-02T03:04:00Z"');
  expect(text.startsWith('basalt apply -f -')).toBe(true);
});

test('keys and user data need a document', () => {
  const text = command({ ...instance, spec: { ...instance.spec, userData: "#cloud-config\nruncmd: ['it''s']" } });
  expect(text.startsWith("basalt apply -f - <<'BASALT'\n")).toBe(true);
  expect(text.endsWith('\nBASALT')).toBe(true);
});

test('a shell reads back what was quoted', () => {
  for (const s of ['plain', "it's", 'a b', '$HOME `id` "x"', '', 'ß\nnew line', '-n', "'"]) {
    expect(execFileSync('sh', ['-c', `printf %s ${quote(s)}`], { encoding: 'utf8' })).toBe(s);
  }
});

test('curl sends the very object', () => {
  const text = curl({ ...instance, spec: { ...instance.spec, userData: "it's $HOME" } }, 'https://cloud.example');
  const sent = execFileSync('sh', ['-c', `curl() { while [ $# -gt 1 ]; do shift; done; printf %s "$1"; }\n${text}`], {
    encoding: 'utf8',
  });
  expect(JSON.parse(sent)).toEqual({ ...instance, spec: { ...instance.spec, userData: "it's $HOME" } });
});

test('sizes', () => {
  expect(sizeFlag(2 ** 30 * 24)).toBe('24GiB');
  expect(sizeFlag(2 ** 20 * 1536)).toBe('1536MiB');
  expect(sizeFlag(1000)).toBe('1000');
});
