import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { de } from '../i18n/de';
import { en } from '../i18n/en';
import { translation } from '../i18n';
import { causeIn, tellIn, told, type Cause } from './cause';

const [english, german] = [translation('en', en), translation('de', de)];
const gpu = { code: 'no-room', missing: 'gpu', model: 'NVIDIA L4', bytes: 24 * 2 ** 30 } as const;

test('a cause has words in each language', () => {
  expect(causeIn(english, gpu)).toBe('No NVIDIA L4 with 24 GiB of free VRAM is available now.');
  expect(causeIn(german, gpu)).toBe('Zurzeit ist keine NVIDIA L4 mit 24 GiB freiem VRAM verfügbar.');
  expect(causeIn(english, { ...gpu, model: '', count: 50 })).toContain('GPU with 24 GiB');
  expect(causeIn(english, { code: 'no-room', missing: 'cpus', count: 8 })).toContain('8 vCPUs');
  expect(causeIn(german, { code: 'image-not-ready', name: 'debian' })).toContain('Image debian');
});

test('every code of the API has words of its own in every language', () => {
  const api = readFileSync(new URL('../../../api/openapi.yaml', import.meta.url), 'utf8');
  const codes = (/code: \{type: string, enum: \[([^\]]+)\], x-go-type: CauseCode\}/.exec(api)?.[1] ?? '').split(', ');
  expect(codes.length).toBeGreaterThan(50);
  for (const code of codes as NonNullable<Cause['code']>[]) {
    const said = [english, german].map((words) => causeIn(words, { code, name: 'it', count: 1, bytes: 1 }));
    expect(said.every(Boolean), code).toBe(true);
    expect(said[0], code).not.toBe(said[1]);
    expect(said.join(), code).not.toMatch(/[{}]/);
  }
});

test('operators read also the text, others only the words', () => {
  const failed = told('not a qcow2 image: gzip', { code: 'image-format', plain: true });
  expect(tellIn(german, failed, false)).toBe('Die Datei ist kein Image im gewünschten Format.');
  expect(tellIn(german, failed, true)).toBe(`${tellIn(german, failed, false)} (not a qcow2 image: gzip)`);
  expect(tellIn(german, told(), false)).toBe('');
});

test('a text without a known cause', () => {
  expect(tellIn(german, told('n1 is full'), true)).toBe('n1 is full');
  expect(tellIn(german, told('a problem'), false)).toContain('nur der Betreiber');
  expect(tellIn(german, told('it sleeps', { code: 'of-a-later-version' as 'failed' }), false)).toBe('it sleeps');
});
