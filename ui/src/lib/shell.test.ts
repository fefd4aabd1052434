import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { branding, volumes } from '../api/resource';
import { asCommand, asCurl, changeAsCurl } from './shell';

test('a command has the flags that have a value', () => {
  expect(
    asCommand(['flavor', 'create', 'big one'], {
      vcpus: 4,
      memory: '8GiB',
      'root-size': undefined,
      public: true,
      default: false,
    }),
  ).toBe("basalt flavor create 'big one' \\\n  --vcpus 4 \\\n  --memory 8GiB \\\n  --public");
  expect(asCommand(['node', 'drain', 'n1'])).toBe('basalt node drain n1');
});

test('a request has a body where it has one', () => {
  expect(asCurl('DELETE', '/v1/nodes/n1', undefined, 'https://h')).toBe(
    'curl -X DELETE https://h/v1/nodes/n1 \\\n  -H "Authorization: Bearer $BASALT_TOKEN"',
  );
  expect(asCurl('POST', '/v1/x', { a: "it's" }, 'https://h')).toContain(`-d '{"a":"it'\\''s"}'`);
  expect(asCurl('POST', '/v1/x', {}, 'https://h')).toContain(`-H 'Content-Type: application/json'`);
  expect(asCurl('PATCH', '/v1/x', {}, 'https://h')).toContain(`-H 'Content-Type: application/merge-patch+json'`);
});

beforeAll(() => vi.stubGlobal('location', { origin: 'https://h' }));
afterAll(() => vi.unstubAllGlobals());

test('a change is a merge patch of what differs', () => {
  const volume = { kind: 'Volume' as const, meta: { id: 'v1', name: 'data', revision: 7 }, spec: { sizeBytes: 1 } };
  const attached = changeAsCurl(volumes, volume, { ...volume, spec: { ...volume.spec, instance: 'i1' } });
  expect(attached).toContain('curl -X PATCH');
  expect(attached).toContain(`/v1/volumes/v1`);
  expect(attached).toContain(`-d '{"spec":{"instance":"i1"}}'`);
  const settings = changeAsCurl(branding, { revision: 1 }, { revision: 1, productName: 'x' });
  expect(settings).toContain('curl -X PATCH');
  expect(settings).toContain(`-d '{"productName":"x"}'`);
});
