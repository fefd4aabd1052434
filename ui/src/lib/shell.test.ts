import { expect, test } from 'vitest';
import { asCommand, asCurl } from './shell';

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
});
