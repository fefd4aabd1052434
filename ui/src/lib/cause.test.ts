import { expect, test } from 'vitest';
import { de } from '../i18n/de';
import { en } from '../i18n/en';
import { translation } from '../i18n';
import { causeIn } from './cause';

const gpu = { code: 'no-room', missing: 'gpu', model: 'NVIDIA L4', bytes: 24 * 2 ** 30 } as const;

test('a cause has words in each language', () => {
  expect(causeIn(translation('en', en), gpu)).toBe('No NVIDIA L4 with 24 GiB of free VRAM is available now.');
  expect(causeIn(translation('de', de), gpu)).toBe('Zurzeit ist keine NVIDIA L4 mit 24 GiB freiem VRAM verfügbar.');
  expect(causeIn(translation('en', en), { ...gpu, model: '', count: 50 })).toContain('GPU with 24 GiB');
  expect(causeIn(translation('en', en), { code: 'no-room', missing: 'cpus', count: 8 })).toContain('8 vCPUs');
  expect(causeIn(translation('de', de), { code: 'data-lost' })).toContain('Daten');
});

test('without a cause that is known the text says it', () => {
  const t = translation('en', en);
  expect(causeIn(t, undefined)).toBeUndefined();
  expect(causeIn(t, { code: 'plain' })).toBeUndefined();
  expect(causeIn(t, { code: 'of-a-later-version' as 'plain' })).toBeUndefined();
});
