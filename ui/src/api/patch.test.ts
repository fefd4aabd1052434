import { expect, test } from 'vitest';
import { mergePatch, patchOf, settingsPatch } from './patch';

test('what has changed is sent, what is gone is null, lists go whole', () => {
  expect(
    mergePatch(
      { a: 1, b: { c: 2, d: 3 }, list: [1, 2], gone: 'x', same: { deep: [1] } },
      { a: 1, b: { c: 5, d: 3 }, list: [2], same: { deep: [1] }, made: true },
    ),
  ).toEqual({ b: { c: 5 }, list: [2], gone: null, made: true });
  expect(mergePatch({ a: 1 }, { a: undefined })).toEqual({ a: null });
  expect(mergePatch({}, { a: undefined })).toEqual({});
  expect(mergePatch({ a: { b: 1 } }, { a: [1] })).toEqual({ a: [1] });
});

test('of an object only what users say is sent', () => {
  const was = {
    kind: 'Volume',
    meta: { id: 'vol-1', name: 'data', revision: 7, labels: { team: 'vision' } },
    spec: { sizeBytes: 1, instance: 'ins-1' },
    status: { phase: 'Ready' },
  };
  expect(patchOf(was, { meta: { ...was.meta, name: 'logs' }, spec: { sizeBytes: 1 } })).toEqual({
    meta: { name: 'logs' },
    spec: { instance: null },
  });
  expect(patchOf(was, { meta: {}, spec: was.spec })).toEqual({});
});

test('of settings what a form does not have is kept, and the revision is not in the patch', () => {
  const was = { revision: 7, port: 465, user: 'a', perMinute: 60, hasPassword: true, status: { sent: 3 } };
  expect(settingsPatch(was, { revision: 7, port: undefined, user: 'b', password: undefined })).toEqual({
    port: null,
    user: 'b',
  });
});
