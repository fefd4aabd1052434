import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { said } from '../api/fake';
import { translation } from '../i18n';
import { de } from '../i18n/de';
import { en } from '../i18n/en';
import type { Alert } from './alert';
import { adviceIn, messageIn } from './alert-words';

const [english, german] = [translation('en', en), translation('de', de)];

const alert = (a: Partial<Alert>): Alert => ({
  code: 'node.lost',
  severity: 'Critical',
  kind: 'Node',
  name: 'n1',
  message: said('in English'),
  hint: said('also in English'),
  ...a,
});

/** enumOf returns the values that openapi.yaml lists for a type of alerts. */
function enumOf(type: string): string[] {
  const api = readFileSync(new URL('../../../api/openapi.yaml', import.meta.url), 'utf8');
  const row = api.split('\n').find((line) => line.includes(`x-go-type: ${type}`) && line.includes('enum: ['));
  return /enum: \[([^\]]+)\]/.exec(row ?? '')?.[1]?.split(', ') ?? [];
}

test('every code and variant of the API has words of its own in every language', () => {
  const [codes, variants] = [enumOf('AlertCode'), enumOf('AlertVariant')];
  expect(codes.length).toBeGreaterThan(40);
  expect(variants.length).toBeGreaterThan(5);
  expect(codes.filter((c) => !(`alert.${c}` in en))).toEqual([]);
  const each = [
    ...codes.map((code) => ({ code })),
    ...variants.map((variant) => ({ code: codes.find((c) => variant.startsWith(c)), params: { variant } })),
  ];
  for (const some of each as Partial<Alert>[]) {
    const a = alert({ ...some, reason: said('') });
    for (const of of [messageIn, adviceIn]) {
      const texts = [english, german].map((words) => of(words, a));
      const what = JSON.stringify(some);
      expect(texts.every(Boolean), what).toBe(true);
      expect(texts[0], what).not.toBe(texts[1]);
      expect(texts.join(), what).not.toMatch(/[{}]|in English/);
    }
    if (a.params?.variant) expect(messageIn(german, a)).not.toBe(messageIn(german, { ...a, params: {} }));
  }
});

test('values are in the words, and the reason is behind them', () => {
  const lost = alert({ params: { count: 3 }, reason: said('no power') });
  expect(messageIn(german, lost)).toBe('Der Knoten ist ausgefallen. Ihm zugewiesene Instanzen: 3. (no power)');
  expect(adviceIn(english, lost)).toContain('basalt node remove n1 --force');
  const until = '2026-03-03T12:00:00Z';
  expect(messageIn(german, alert({ code: 'node.certificate', params: { until } }))).toMatch(/am .*2026.* ab/);
  expect(adviceIn(german, alert({ code: 'payment.disputed', params: { until } }))).toMatch(/, bis .*2026.*\.$/);
  expect(adviceIn(german, alert({ code: 'payment.disputed' }))).toMatch(/Zahlungsanbieter\.$/);
  expect(messageIn(german, alert({ code: 'node.clock', params: { seconds: 60 } }))).toContain('60 s');
  expect(messageIn(english, alert({ code: 'node.storage', params: { names: ['a', 'b'], percent: 4 } }))).toContain(
    'a, b. Free in the fullest: 4%',
  );
  const due = { names: ['acme', 'beta'], count: 7 };
  expect(messageIn(german, alert({ code: 'invoice.overdue', params: due }))).toContain('(7): acme, beta und 5 weitere');
});

test('what of a GPU is allocated beyond its limits', () => {
  const code = 'gpu.promised';
  const params = { bytes: 9 * 2 ** 30, limitBytes: 8 * 2 ** 30, percent: 120, count: 3, limit: 2 };
  expect(messageIn(english, alert({ code, params }))).toContain(
    '9 GiB of VRAM, of which 8 GiB may be allocated; 120% of its time; 3 vGPUs, of which 2 are allowed.',
  );
  expect(messageIn(english, alert({ code, params: { percent: 120 } }))).toContain('allows: 120% of its time.');
});

test('causes and hardware checks have the reader’s words', () => {
  const pending = alert({
    code: 'instance.pending',
    cause: { code: 'suspended', plain: true },
    reason: said('unpaid'),
  });
  expect(messageIn(german, pending)).toMatch(/\. Läuft nicht, solange die Organisation gesperrt ist\. \(unpaid\)$/);
  const worn = alert({
    code: 'node.hardware',
    params: { variant: 'node.hardware-worse', names: ['disks'], advice: 'Go.' },
  });
  expect(messageIn(german, worn)).toBe('Hardware des Knotens wird schlechter: Zustand der Datenträger.');
  expect(adviceIn(german, worn)).toMatch(/hardware --all\. \(Go\.\)$/);
});

test('an alert of a later version is in English', () => {
  const later = alert({ code: 'node.melted' as Alert['code'] });
  expect(messageIn(german, later)).toBe('in English');
  expect(adviceIn(german, later)).toBe('also in English');
  const variant = alert({ params: { variant: 'node.lost-twice' as never } });
  expect(messageIn(german, variant)).toContain('ausgefallen');
});
