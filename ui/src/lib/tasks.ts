// Long operations as tasks: those that objects report, and this window's own (uploads). A task that was seen in
// progress is kept until it is dismissed, to show its result.
import type { CauseText } from '../api/cause-text';
import type { WatchedObject, WatchEvent } from '../api/watch';
import { told, type Cause, type Told } from './cause';

export type Doing = 'create' | 'start' | 'stop' | 'delete' | 'move' | 'copy' | 'import' | 'upload';

export interface Task {
  /** ID of the object, or of the window's own task. */
  id: string;
  kind: string;
  name: string;
  doing: Doing;
  state: 'running' | 'done' | 'failed';
  /** 0 to 100, if known. */
  percent?: number;
  /** What it is doing, or why it failed. */
  note?: Told;
  href?: string;
}

export type Tasks = ReadonlyMap<string, Task>;

interface Status {
  phase?: string;
  step?: CauseText;
  stepCause?: Cause;
  lastError?: CauseText;
  cause?: Cause;
  progressBytes?: number;
  totalBytes?: number;
}

/** The meaning of an object's phases; a phase that is missing here is final. */
const phases: Record<string, Record<string, Doing>> = {
  Instance: { Pending: 'create', Creating: 'create', Starting: 'start', Stopping: 'stop', Deleting: 'delete' },
  Volume: { Pending: 'create', Creating: 'create', Deleting: 'delete' },
  Snapshot: { Pending: 'create', Creating: 'create', Deleting: 'delete' },
  Backup: { Pending: 'copy', Running: 'copy', Deleting: 'delete' },
  Image: { Importing: 'import' },
  Migration: { Pending: 'move', Preparing: 'move', Copying: 'move' },
};

const failures = ['Failed', 'Aborted'];
const most = 200; // tasks that are kept

const percentOf = (s: Status) =>
  s.totalBytes && s.progressBytes !== undefined
    ? Math.min(100, Math.floor((s.progressBytes / s.totalBytes) * 100))
    : undefined;

/** noteOf returns why an object has failed, or else what it is doing, or what it waits for. */
function noteOf(s: Status, a: { reason?: CauseText; cause?: Cause }): Told | undefined {
  const said = s.lastError ? told(s.lastError, s.cause) : s.step ? told(s.step, s.stepCause) : told(a.reason, a.cause);
  return said.text ? said : undefined;
}

/** taskOf returns the task of an object, given the one before; nothing if it was never seen in progress. */
export function taskOf(o: WatchedObject, before?: Task): Task | undefined {
  const status = (o.status ?? {}) as Status;
  const assignment = (o.assignment ?? {}) as { reason?: CauseText; cause?: Cause };
  const doing = o.meta.deletedAt ? 'delete' : phases[o.kind]?.[status.phase ?? 'Pending'];
  const base = {
    id: o.meta.id ?? '',
    kind: o.kind,
    name: o.meta.name,
    href: o.kind === 'Instance' ? `/instances/${o.meta.id}` : undefined,
  };
  if (doing)
    return {
      ...base,
      doing,
      state: 'running',
      percent: percentOf(status),
      note: noteOf(status, assignment),
    };
  if (!before) return undefined;
  const failed = failures.includes(status.phase ?? '');
  return {
    ...base,
    doing: before.doing,
    state: failed ? 'failed' : 'done',
    note: failed ? noteOf({ lastError: status.lastError, cause: status.cause }, {}) : undefined,
  };
}

/** noted returns the tasks after a change; the same map if nothing is new. */
export function noted(tasks: Tasks, { type, object: o }: Pick<WatchEvent, 'type' | 'object'>): Tasks {
  const id = o.meta.id ?? '';
  const before = tasks.get(id);
  if (type === 'remove')
    return before?.state === 'running'
      ? put(tasks, { ...before, state: 'done', note: undefined, href: undefined })
      : tasks;
  if (type !== 'put' || !phases[o.kind]) return tasks;
  if (
    before &&
    before.state !== 'running' &&
    !o.meta.deletedAt &&
    !phases[o.kind]?.[((o.status ?? {}) as Status).phase ?? 'Pending']
  )
    return tasks;
  const now = taskOf(o, before);
  return now && !same(now, before) ? put(tasks, now) : tasks;
}

const same = (a: Task, b?: Task) =>
  b !== undefined &&
  a.doing === b.doing &&
  a.state === b.state &&
  a.percent === b.percent &&
  a.note?.text === b.note?.text &&
  a.note?.cause?.code === b.note?.cause?.code &&
  a.name === b.name;

/** put adds the newest task at the end, and removes the oldest ended ones if there are too many. */
function put(tasks: Tasks, task: Task): Tasks {
  const next = new Map(tasks);
  next.set(task.id, task);
  if (next.size > most) next.delete([...next.values()].find((t) => t.state !== 'running')?.id ?? [...next.keys()][0]!);
  return next;
}

/** tasksOf returns the tasks of objects that are in progress. */
export const tasksOf = (objects: WatchedObject[], tasks: Tasks = new Map()): Tasks =>
  objects.reduce((all, object) => (all.has(object.meta.id ?? '') ? all : noted(all, { type: 'put', object })), tasks);

// The window's own tasks, kept across navigation.
let tasks: Tasks = new Map();
const listeners = new Set<() => void>();

function become(next: Tasks) {
  if (next === tasks) return;
  tasks = next;
  listeners.forEach((f) => f());
}

export const taskStore = {
  get: () => tasks,
  subscribe: (f: () => void) => (listeners.add(f), () => void listeners.delete(f)),
  note: (e: Pick<WatchEvent, 'type' | 'object'>) => become(noted(tasks, e)),
  look: (objects: WatchedObject[]) => become(tasksOf(objects, tasks)),
  /** add adds a task of the window, such as an upload; update and finish refer to it by its ID. */
  add: (task: Omit<Task, 'state'>) => become(put(tasks, { ...task, state: 'running' })),
  update: (id: string, change: Pick<Task, 'percent' | 'note'>) => {
    const old = tasks.get(id);
    if (old) become(put(tasks, { ...old, ...change }));
  },
  finish: (id: string, error?: Told) => {
    const old = tasks.get(id);
    if (old)
      become(put(tasks, { ...old, state: error === undefined ? 'done' : 'failed', note: error, percent: undefined }));
  },
  /** dismiss removes the ended tasks. */
  dismiss: () => become(new Map([...tasks].filter(([, t]) => t.state === 'running'))),
  clear: () => become(new Map()),
};
