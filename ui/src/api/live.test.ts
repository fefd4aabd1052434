import { QueryClient } from '@tanstack/react-query';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { applier, changed, moved } from './live';
import type { WatchEvent } from './watch';

const object = (id: string, revision: number, more = {}) => ({
  kind: 'Instance',
  meta: { id, name: id, revision },
  ...more,
});
const put = (id: string, revision: number): WatchEvent => ({ revision, type: 'put', object: object(id, revision) });
const page = { items: [object('a', 1), object('b', 2)] };

let end: AbortController;
beforeEach(() => {
  end = new AbortController();
  vi.useFakeTimers();
});
afterEach(() => {
  end.abort();
  vi.useRealTimers();
});

const newest = (...events: WatchEvent[]) => new Map(events.map((e) => [e.object.meta.id ?? '', e]));

test('a newer form replaces in place, an older one does not', () => {
  expect(changed(page, newest(put('b', 3))).items.map((i) => i.meta.revision)).toEqual([1, 3]);
  expect(changed(page, newest(put('b', 3))).items[0]).toBe(page.items[0]);
  expect(changed(page, newest(put('b', 2), put('c', 9)))).toBe(page);
  expect(
    changed(page, newest({ ...put('a', 9), type: 'remove' }, put('b', 3))).items.map((i) => i.meta.revision),
  ).toEqual([3]);
});

function setUp() {
  const client = new QueryClient();
  const list = ['Instance', 'list', { project: 'p' }];
  client.setQueryData(list, page);
  client.setQueryData(['Instance', 'one', 'a'], object('a', 1));
  return { client, list, apply: applier(client, end.signal, (f) => f()), asked: vi.spyOn(client, 'invalidateQueries') };
}

test('a change reaches the list and the object’s own page without asking again', () => {
  const { client, list, apply, asked } = setUp();
  apply(put('a', 5));
  expect(client.getQueryData<typeof page>(list)?.items[0]?.meta.revision).toBe(5);
  expect(client.getQueryData<ReturnType<typeof object>>(['Instance', 'one', 'a'])?.meta.revision).toBe(5);
  vi.runAllTimers();
  expect(asked).not.toHaveBeenCalled();
});

test('an object that has another place in a list makes it ask again', () => {
  const by = (sort: string, phase: string, q = {}) => {
    const now = { ...put('a', 5), object: object('a', 5, { status: { phase } }) };
    return moved({ items: [object('a', 1, { status: { phase: 'Stopped' } })] }, newest(now), { sort, ...q });
  };
  expect(by('name', 'Running')).toBe(false);
  expect(by('-state', 'Running')).toBe(true);
  expect(by('-state', 'Stopped')).toBe(false);
  expect(by('status.phase', 'Running')).toBe(true);
  expect(by('name', 'Running', { fieldSelector: 'state=Stopped,spec.pool=x' })).toBe(true);
  expect(by('name', 'Running', { labelSelector: 'a=b' })).toBe(false);
  const { client, apply, asked } = setUp();
  client.setQueryData(['Instance', 'list', { sort: 'state' }], page);
  apply({ ...put('b', 9), object: object('b', 9, { status: { phase: 'Running' } }) });
  vi.runAllTimers();
  expect(asked).toHaveBeenCalledWith({ queryKey: ['Instance', 'list'] });
});

test('new objects make the lists ask again, once for many', () => {
  const { apply, asked } = setUp();
  for (let i = 0; i < 50; i++) apply(put(`new${i}`, 10 + i));
  expect(asked).not.toHaveBeenCalled();
  vi.runAllTimers();
  expect(asked).toHaveBeenCalledTimes(1);
  expect(asked).toHaveBeenCalledWith({ queryKey: ['Instance', 'list'] });
});

test('while everything changes, lists are asked for only now and then', () => {
  const { apply, asked } = setUp();
  for (let i = 0; i < 100; i++) {
    apply(put(`new${i}`, 10 + i));
    vi.advanceTimersByTime(100);
  }
  expect(asked.mock.calls.length).toBeGreaterThan(3);
  expect(asked.mock.calls.length).toBeLessThan(7);
});

test('the changes of a frame are put in together, the last of each object', () => {
  const { client, list } = setUp();
  const set = vi.spyOn(client, 'setQueryData');
  let draw: () => void = () => undefined;
  const apply = applier(client, end.signal, (f) => (draw = f));
  for (let i = 3; i < 50; i++) apply(put(i % 2 ? 'a' : 'b', i));
  expect(set).not.toHaveBeenCalled();
  draw();
  expect(client.getQueryData<typeof page>(list)?.items.map((i) => i.meta.revision)).toEqual([49, 48]);
  expect(set).toHaveBeenCalledTimes(2); // the list, and the page of one
});

test('what is removed is gone from the list, and its page knows', () => {
  const { client, list, apply } = setUp();
  apply({ revision: 7, type: 'remove', object: object('a', 7) });
  expect(client.getQueryData<typeof page>(list)?.items.map((i) => i.meta.id)).toEqual(['b']);
  expect(client.getQueryData(['Instance', 'one', 'a'])).toBeNull();
});

test('an answer that was asked for before a change does not undo it', async () => {
  const { client, list, apply } = setUp();
  let answer: (p: typeof page) => void = () => undefined;
  const asked = client.fetchQuery({
    queryKey: list,
    queryFn: () => new Promise<typeof page>((resolve) => (answer = resolve)),
  });
  await vi.advanceTimersByTimeAsync(0);
  apply(put('a', 5));
  apply({ revision: 7, type: 'remove', object: object('b', 7) });
  answer(page);
  await asked;
  expect(client.getQueryData<typeof page>(list)?.items.map((i) => [i.meta.id, i.meta.revision])).toEqual([['a', 5]]);
  client.setQueryData(['Instance', 'one', 'a'], object('a', 4)); // the answer to one's own change
  expect(client.getQueryData<ReturnType<typeof object>>(['Instance', 'one', 'a'])?.meta.revision).toBe(5);
});

test('what has ended renews nothing', () => {
  const { client, list, apply } = setUp();
  apply(put('a', 5));
  end.abort();
  client.setQueryData(list, page);
  expect(client.getQueryData<typeof page>(list)).toEqual(page);
});

test('after a gap everything is asked again', () => {
  const { apply, asked } = setUp();
  apply({ revision: 9, type: 'sync', object: object('', 0) });
  expect(asked).toHaveBeenCalledWith();
});

test('a list of rows that are no objects is read without an error', async () => {
  const { client } = setUp();
  const rows = await client.fetchQuery({
    queryKey: ['AccessReview', 'list', {}],
    queryFn: () => Promise.resolve({ items: [{ name: 'ann' }] }),
  });
  expect(rows.items).toEqual([{ name: 'ann' }]);
  expect(client.getQueryState(['AccessReview', 'list', {}])?.status).toBe('success');
});
