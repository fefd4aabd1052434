import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { translation } from '../i18n';
import { en } from '../i18n/en';
import { formats, type Format } from './formats';
import { owner, problems, valueAt } from './problems';

const text = translation('en', en);
const examples = JSON.parse(
  readFileSync(new URL('../../../api/testdata/formats.json', import.meta.url), 'utf8'),
) as Record<Format, { accepted: string[]; refused: string[] }>;

// api/formats_test.go tests the Go validators with the same examples.
test('formats tell the examples that the server is held to', () => {
  expect(Object.keys(examples).sort()).toEqual(Object.keys(formats).sort());
  for (const [name, { accepted, refused }] of Object.entries(examples)) {
    const accepts = formats[name as Format];
    expect(
      accepted.filter((s) => !accepts(s)),
      name,
    ).toEqual([]);
    expect(refused.filter(accepts), name).toEqual([]);
  }
});

const at = (schema: Parameters<typeof problems>[0], body: unknown) =>
  Object.fromEntries(problems(schema, body, text).map((p) => [p.path, p.text]));

test('all problems of a body are found at once, with sizes in units', () => {
  const body = { kind: 'Flavor', meta: { name: 'Large!' }, spec: { vcpus: 300, memoryBytes: 1 } };
  expect(at('Flavor', body)).toEqual({
    'meta.name': en['form.format.name'],
    'spec.vcpus': 'Enter 1 to 256.',
    'spec.memoryBytes': 'Enter at least 64 MiB.',
  });
});

test('what is required and empty is missing; what is not given is not', () => {
  expect(at('LoadBalancer', { meta: { name: '' }, spec: { network: '', protocol: 'tcp', port: 80 } })).toEqual({
    'meta.name': 'Required.',
    'spec.network': 'Required.',
  });
  expect(at('Network', { meta: { name: 'a' }, spec: { cidr4: '' } })).toEqual({});
  const vgpu = { vramBytes: 2 ** 30, sharePercent: 0 };
  expect(at('Instance', { meta: { name: 'a' }, spec: { flavor: 'tiny', vgpu } })).toEqual({});
});

test('rows are told apart', () => {
  const rule = { direction: 'ingress', protocol: 'tcp' };
  const body = { meta: { name: 'a' }, spec: { rules: [rule, { ...rule, ports: '90-80', cidr: '10.0.0.1/8' }] } };
  expect(Object.keys(at('SecurityGroup', body))).toEqual(['spec.rules[1].ports', 'spec.rules[1].cidr']);
});

test('a user has the name of a mailbox, and a number has to be one', () => {
  expect(at('User', { meta: { name: 'ann' }, spec: {} })).toEqual({ 'meta.name': en['form.format.mailbox'] });
  expect(at('Budget', { meta: { name: 'a' }, spec: { amountMicros: NaN, cap: 'none' } })).toEqual({
    'spec.amountMicros': en['cust.amountWrong'],
  });
});

test('a problem belongs to the nearest field', () => {
  expect(owner(['spec', 'spec.rules[1]', 'spec.rules[10]'], 'spec.rules[1].cidr')).toBe('spec.rules[1]');
  expect(owner(['spec.rules[1]'], 'spec.rules[10]')).toBeUndefined();
  expect(valueAt({ spec: { rules: [{ cidr: 'x' }] } }, 'spec.rules[0].cidr')).toBe('x');
  expect(valueAt({}, 'spec.rules[0].cidr')).toBeUndefined();
});
