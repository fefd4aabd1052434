// Applies changes to the query cache. Lists keep the order and the pages of their server: an object in a list is
// replaced in place; for an object that is in no list, or whose place has changed, the lists are fetched again, soon
// and once. The changes of
// one frame are applied together, so that a thousand changes render a page once.
import { notifyManager, type QueryClient, type QueryKey } from '@tanstack/react-query';
import type { WatchedObject, WatchEvent } from './watch';

interface Page {
  items: WatchedObject[];
}

const revision = (o: WatchedObject) => o.meta.revision ?? 0;

/** newest maps objects of a kind to their last changes. */
type Newest = Map<string, WatchEvent>;

/** newer returns the object after a change, null if it was deleted, or the same object if it is up to date. */
function newer(old: WatchedObject, e: WatchEvent | undefined): WatchedObject | null {
  if (!e || (e.type === 'put' && revision(old) >= revision(e.object))) return old;
  return e.type === 'put' ? e.object : null;
}

/** Query is the part of a list's query that decides which objects it has and where. */
interface Query {
  sort?: string;
  search?: string;
  phase?: string;
  fieldSelector?: string;
  labelSelector?: string;
}

/** deciding returns the fields that decide an object's place in a list. */
function deciding(q: Query): string[] {
  const terms = (q.fieldSelector ?? '').split(',').map((term) => /^[\w.]+/.exec(term.trim())?.[0]);
  return [
    (q.sort || 'name').replace(/^-/, ''),
    ...terms.filter((f) => f !== undefined),
    ...(q.search ? ['name'] : []),
    ...(q.phase ? ['state'] : []),
    ...(q.labelSelector ? ['labels'] : []),
  ];
}

/** valueAt returns the value of a field in the API's words. */
function valueAt(o: WatchedObject, field: string): unknown {
  const at = (of: unknown, path: string[]): unknown =>
    path.reduce<unknown>((v, name) => (v as Record<string, unknown> | undefined)?.[name], of);
  if (field === 'state')
    // which follows from these
    return [
      o.meta.deletedAt,
      at(o, ['status', 'phase']),
      at(o, ['assignment', 'phase']),
      at(o, ['assignment', 'node']),
    ];
  return field.includes('.') ? at(o, field.split('.')) : at(o.meta, [field]);
}

/** moved reports whether an object in a page has another place after its change, or none. */
export function moved(page: Page, newest: Newest, q: Query): boolean {
  const fields = deciding(q);
  return page.items.some((old) => {
    const now = newer(old, newest.get(old.meta.id ?? ''));
    if (!now || now === old) return false;
    return fields.some((f) => JSON.stringify(valueAt(old, f)) !== JSON.stringify(valueAt(now, f)));
  });
}

/** changed returns a page with the newer objects and without the deleted ones, or the same page. */
export function changed(page: Page, newest: Newest): Page {
  const items = page.items.flatMap((old) => newer(old, newest.get(old.meta.id ?? '')) ?? []);
  return items.length === page.items.length && items.every((o, i) => o === page.items[i]) ? page : { ...page, items };
}

const none: Newest = new Map();
const soon = 250; // ms
const pause = 2000; // ms between two fetches of the same lists, however much changes

/** nextFrame runs f before the next rendering; in a hidden window, which is not rendered, after a timeout. */
const nextFrame = (f: () => void) => void (document.hidden ? setTimeout(f, 50) : requestAnimationFrame(f));

/** How long a response may be older than a change that arrived before it. */
const late = 60_000; // ms

/** applier applies changes to a client's cache until the signal aborts. It applies them again when an older response
 * has replaced them, as no further change may follow that would correct it. */
export function applier(
  client: QueryClient,
  signal: AbortSignal,
  later: (f: () => void) => void = nextFrame,
): (e: WatchEvent) => void {
  const asked = new Map<string, number>(); // when the lists of a kind are fetched
  const askAgain = (kind: string) => {
    const now = Date.now();
    const last = asked.get(kind) ?? 0;
    if (last > now) return;
    const at = Math.max(now + soon, last + pause);
    asked.set(kind, at);
    setTimeout(() => void client.invalidateQueries({ queryKey: [kind, 'list'] }), at - now);
  };
  const renew = (key: QueryKey, newest: Newest) => {
    if (newest.size === 0) return; // also of lists that the server computes, whose rows are no objects
    const old = client.getQueryData<(Page & WatchedObject) | null>(key);
    const now = !old
      ? old
      : key[1] === 'list'
        ? changed(old, newest)
        : key[1] === 'one'
          ? newer(old, newest.get(String(key[2])))
          : old;
    if (now !== old) client.setQueryData(key, now);
  };
  const kept = new Map<string, Newest>(); // the changes of each kind that responses may not contain yet
  const keep = (kind: string, newest: Newest) => {
    const all = kept.get(kind) ?? new Map<string, WatchEvent>();
    kept.set(kind, all);
    newest.forEach((e, id) => all.set(id, e));
    setTimeout(() => newest.forEach((e, id) => all.get(id) === e && all.delete(id)), late);
  };
  const stop = client.getQueryCache().subscribe((e) => {
    if (e.type !== 'updated' || e.action.type !== 'success') return;
    const key = e.query.queryKey as QueryKey;
    renew(key, kept.get(String(key[0])) ?? none);
  });
  signal.addEventListener('abort', stop);
  const take = (kind: string, newest: Newest) => {
    keep(kind, newest);
    const shown = new Set<string>();
    let sort = false;
    for (const [key, page] of client.getQueriesData<Page>({ queryKey: [kind, 'list'] })) {
      for (const { meta } of page?.items ?? []) if (meta.id !== undefined && newest.has(meta.id)) shown.add(meta.id);
      const q = key[2];
      sort ||= page !== undefined && moved(page, newest, typeof q === 'object' && q !== null ? q : {});
      renew(key, newest);
    }
    for (const id of newest.keys()) renew([kind, 'one', id], newest);
    if (sort || [...newest].some(([id, e]) => e.type === 'remove' || !shown.has(id))) askAgain(kind);
  };
  let waiting = new Map<string, Newest>();
  const flush = () => {
    const all = waiting;
    waiting = new Map();
    notifyManager.batch(() => all.forEach((newest, kind) => take(kind, newest)));
  };
  return (e) => {
    if (e.type === 'sync') {
      void client.invalidateQueries();
      return;
    }
    const first = waiting.size === 0;
    const { kind, meta } = e.object;
    const newest = waiting.get(kind) ?? new Map<string, WatchEvent>();
    waiting.set(kind, newest.set(meta.id ?? '', e));
    if (first) later(flush);
  };
}
