import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { refused } from './client';
import { withoutCommands } from './hint';

test.each([
  ['1 to 65535', '1 to 65535'],
  ['basalt flavor list', undefined],
  ['basalt image list, or basalt app list', undefined],
  ['detach it first: basalt volume detach', 'detach it first'],
  [
    'its balance is used up, or it was suspended: `basalt wallet` and `basalt budget list` say which',
    'its balance is used up, or it was suspended',
  ],
  ['see `basalt payment list`; to correct it, record a refund', 'to correct it, record a refund'],
  [
    'set them up first: a passkey or one-time codes in the portal, or basalt totp enable',
    'set them up first: a passkey or one-time codes in the portal',
  ],
  ['basaltd does not answer', 'basaltd does not answer'],
])('%s', (hint, want) => expect(withoutCommands(hint)).toBe(want));

test('an error and its fields have hints without commands', () => {
  const e = refused(400, {
    hint: 'basalt image list',
    errors: [{ field: 'spec.flavor', detail: 'choose a flavor', hint: 'basalt flavor list' }],
  });
  expect(e.hint).toBeUndefined();
  expect(e.fields).toEqual([{ field: 'spec.flavor', detail: 'choose a flavor', hint: undefined }]);
});

const server = new URL('../../../api/', import.meta.url).pathname;

/** hints returns the hints in the server's sources. */
function hints(): string[] {
  const files = readdirSync(server, { recursive: true, encoding: 'utf8' }).filter(
    (f) => f.endsWith('.go') && !f.endsWith('_test.go'),
  );
  return files.flatMap((f) =>
    [...readFileSync(join(server, f), 'utf8').matchAll(/WithHint\("((?:[^"\\]|\\.)*)"/g)].map((m) => m[1]!),
  );
}

test('no hint of the server leaves a command or a torn sentence', () => {
  const all = hints();
  expect(all.length).toBeGreaterThan(150);
  expect(all.filter((h) => /\bbasalt [a-z]/.test(h)).length).toBeGreaterThan(20);
  const left = all.map((h) => [h, withoutCommands(h) ?? ''] as const).filter(([h, l]) => l !== h);
  expect(left.filter(([, l]) => /\bbasalt [a-z]| --[a-z]|[;:,(]$|^(and|or)\b|\bif\b|\bunless\b/.test(l))).toEqual([]);
});
