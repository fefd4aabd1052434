import { beforeEach, expect, test } from 'vitest';
import { noted, taskOf, tasksOf, taskStore, type Tasks } from './tasks';

const object = (phase: string, status = {}, meta = {}) => ({
  kind: 'Instance',
  meta: { id: 'i', name: 'train', ...meta },
  status: { phase, ...status },
});
const put = (o: ReturnType<typeof object>) => ({ type: 'put' as const, object: o });
const none: Tasks = new Map();

beforeEach(() => taskStore.clear());

test('what is under way is a task, what has settled is none', () => {
  expect(tasksOf([object('Running')]).size).toBe(0);
  expect(taskOf(object('Creating', { step: 'creating the root volume' }))).toMatchObject({
    doing: 'create',
    state: 'running',
    note: { text: 'creating the root volume' },
    href: '/instances/i',
  });
  expect(taskOf(object('Running', {}, { deletedAt: '2026-01-01T00:00:00Z' }))).toMatchObject({
    doing: 'delete',
    state: 'running',
  });
  expect(tasksOf([{ kind: 'Node', meta: { id: 'n', name: 'n' }, status: { phase: 'Pending' } }]).size).toBe(0);
});

test('a task that was seen says how it ended', () => {
  const creating = noted(none, put(object('Creating')));
  expect(noted(creating, put(object('Running'))).get('i')).toMatchObject({ state: 'done', doing: 'create' });
  const failed = noted(creating, put(object('Failed', { lastError: 'no disk' })));
  expect(failed.get('i')).toMatchObject({ state: 'failed', note: { text: 'no disk' } });
  // It stays failed while other things change, and restarts with new work.
  expect(noted(failed, put(object('Failed', { lastError: 'other' })))).toBe(failed);
  expect(noted(failed, put(object('Starting'))).get('i')).toMatchObject({ state: 'running', doing: 'start' });
});

test('what goes was deleted; what nobody saw at work is not told', () => {
  const deleting = noted(none, put(object('Running', {}, { deletedAt: 'x' })));
  expect(noted(deleting, { type: 'remove', object: object('Running') }).get('i')).toMatchObject({
    state: 'done',
    doing: 'delete',
    href: undefined,
  });
  expect(noted(none, { type: 'remove', object: object('Running') })).toBe(none);
});

test('progress in parts of a hundred, and nothing new is the same', () => {
  const move = (n: number) => ({
    type: 'put' as const,
    object: {
      kind: 'Migration',
      meta: { id: 'm', name: 'm' },
      status: { phase: 'Copying', progressBytes: n, totalBytes: 1000 },
    },
  });
  const half = noted(none, move(500));
  expect(half.get('m')?.percent).toBe(50);
  expect(noted(half, move(501))).toBe(half);
});

test('one’s own tasks, and what ended is dismissed', () => {
  taskStore.add({ id: 'up', kind: 'Image', name: 'debian', doing: 'upload' });
  taskStore.update('up', { percent: 40 });
  expect(taskStore.get().get('up')).toMatchObject({ state: 'running', percent: 40 });
  taskStore.finish('up', { text: 'too large' });
  expect(taskStore.get().get('up')).toMatchObject({ state: 'failed', note: { text: 'too large' } });
  taskStore.dismiss();
  expect(taskStore.get().size).toBe(0);
});

test('there are never too many', () => {
  let all = none;
  for (let i = 0; i < 500; i++) all = noted(all, put(object('Creating', {}, { id: `i${i}` })));
  expect(all.size).toBe(200);
});
