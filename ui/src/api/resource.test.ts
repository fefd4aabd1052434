// @vitest-environment jsdom
import { afterEach, expect, test, vi } from 'vitest';
import { changedMeanwhile, securitySettings, topUpOf } from './resource';

afterEach(() => void vi.unstubAllGlobals());

function answer(status: number, body: object) {
  const sent: Request[] = [];
  vi.stubGlobal('fetch', (r: Request) => {
    sent.push(r);
    return Promise.resolve(Response.json(body, { status }));
  });
  return sent;
}

test('settings are changed only at the revision that was read', async () => {
  const sent = answer(200, { revision: 8 });
  const was = { revision: 7, requireSupportConsent: false, requireSecondFactor: ['viewer' as const] };
  await securitySettings.patch('', was, { ...was, requireSupportConsent: true });
  await topUpOf('org-1').patch('', {}, { enabled: true });
  expect(
    sent.map((r) => [r.method, new URL(r.url).pathname + new URL(r.url).search, r.headers.get('If-Match')]),
  ).toEqual([
    ['PATCH', '/portal/v1/security-settings', '"7"'],
    ['PATCH', '/portal/v1/top-up?organization=org-1', '"0"'], // of settings that were never changed
  ]);
  expect(await sent[0]?.json()).toEqual({ requireSupportConsent: true });
  expect(sent[0]?.headers.get('Content-Type')).toBe('application/merge-patch+json');
});

test('a change of another administrator is a conflict, which forms show', async () => {
  answer(412, { code: 'precondition_failed', detail: 'the object has changed since it was read' });
  const refused = await securitySettings.patch('', { revision: 7 }, { revision: 7 }).catch((e: unknown) => e);
  expect(changedMeanwhile(refused)).toBe(true);
});
