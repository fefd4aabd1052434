// Long work as tasks: what objects say of themselves, and what this window does
// itself (uploads). A task that was seen under way stays, until it is dismissed,
// to say how it ended.
import type { WatchedObject, WatchEvent } from '../api/watch';

export type Doing = 'create' | 'start' | 'stop' | 'delete' | 'move' | 'copy' | 'import' | 'upload';

export interface Task {
  /** Of the object, or one's own. */
  id: string;
  kind: string;
  name: string;
  doing: Doing;
  state: 'running' | 'done' | 'failed';
  /** 0 to 100, where it is known. */
  percent?: number;
  /** What it does now, or why it failed. */
  note?: string;
  href?: string;
}

export type Tasks = ReadonlyMap<string, Task>;

interface Status {
  phase?: string;
  step?: string;
  lastError?: string;
  progressBytes?: number;
  totalBytes?: number;
}

/** What an object's phases mean; one that is not here is settled. */
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

/** taskOf an object, given what it was before; nothing, if nobody saw it at work. */
export function taskOf(o: WatchedObject, before?: Task): Task | undefined {
  const status = (o.status ?? {}) as Status;
  const assignment = (o.assignment ?? {}) as { reason?: string };
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
      note: status.lastError || status.step || assignment.reason || undefined,
    };
  if (!before) return undefined;
  const failed = failures.includes(status.phase ?? '');
  return {
    ...base,
    doing: before.doing,
    state: failed ? 'failed' : 'done',
    note: failed ? status.lastError : undefined,
  };
}

/** noted is the tasks after a change; the same where it says nothing new. */
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
  a.note === b.note &&
  a.name === b.name;

/** put has the newest last, and lets go of what ended first where there are too many. */
function put(tasks: Tasks, task: Task): Tasks {
  const next = new Map(tasks);
  next.set(task.id, task);
  if (next.size > most) next.delete([...next.values()].find((t) => t.state !== 'running')?.id ?? [...next.keys()][0]!);
  return next;
}

/** tasksOf objects: what is under way among them. */
export const tasksOf = (objects: WatchedObject[], tasks: Tasks = new Map()): Tasks =>
  objects.reduce((all, object) => (all.has(object.meta.id ?? '') ? all : noted(all, { type: 'put', object })), tasks);

// The window's own tasks, kept over navigation.
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
  /** add one's own, as an upload; update and finish name it by its id. */
  add: (task: Omit<Task, 'state'>) => become(put(tasks, { ...task, state: 'running' })),
  update: (id: string, change: Pick<Task, 'percent' | 'note'>) => {
    const old = tasks.get(id);
    if (old) become(put(tasks, { ...old, ...change }));
  },
  finish: (id: string, error?: string) => {
    const old = tasks.get(id);
    if (old)
      become(put(tasks, { ...old, state: error === undefined ? 'done' : 'failed', note: error, percent: undefined }));
  },
  /** dismiss what has ended. */
  dismiss: () => become(new Map([...tasks].filter(([, t]) => t.state === 'running'))),
  clear: () => become(new Map()),
};
