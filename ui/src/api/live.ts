// What changes do to what the pages have read. Lists keep their server's order
// and pages: an object that a list shows is replaced in place; of one that no
// list shows, the lists are asked for again, soon and once. Changes of one frame
// are put in together, so that a thousand draw a page once.
import { notifyManager, type QueryClient, type QueryKey } from '@tanstack/react-query';
import type { WatchedObject, WatchEvent } from './watch';

interface Page {
  items: WatchedObject[];
}

const revision = (o: WatchedObject) => o.meta.revision ?? 0;

/** newest are the last changes of each object of a kind. */
type Newest = Map<string, WatchEvent>;

/** newer is the object as a change has made it, null when it is gone, or the same object. */
function newer(old: WatchedObject, e: WatchEvent | undefined): WatchedObject | null {
  if (!e || (e.type === 'put' && revision(old) >= revision(e.object))) return old;
  return e.type === 'put' ? e.object : null;
}

/** changed is a page with objects' newer forms and without those that are gone, or the same page. */
export function changed(page: Page, newest: Newest): Page {
  const items = page.items.flatMap((old) => newer(old, newest.get(old.meta.id ?? '')) ?? []);
  return items.length === page.items.length && items.every((o, i) => o === page.items[i]) ? page : { ...page, items };
}

const none: Newest = new Map();
const soon = 250; // ms
const pause = 2000; // ms between two questions for the same lists, however much changes

/** nextFrame runs f before the window is drawn again; a hidden one is not drawn. */
const nextFrame = (f: () => void) => void (document.hidden ? setTimeout(f, 50) : requestAnimationFrame(f));

/** What an answer brings may be older than a change that came before it: for so long. */
const late = 60_000; // ms

/** applier puts changes into a client's cache, until the signal, and again when an older answer has replaced them: there
 * may be no further change to put that right. */
export function applier(
  client: QueryClient,
  signal: AbortSignal,
  later: (f: () => void) => void = nextFrame,
): (e: WatchEvent) => void {
  const asked = new Map<string, number>(); // when the lists of a kind are asked for
  const askAgain = (kind: string) => {
    const now = Date.now();
    const last = asked.get(kind) ?? 0;
    if (last > now) return;
    const at = Math.max(now + soon, last + pause);
    asked.set(kind, at);
    setTimeout(() => void client.invalidateQueries({ queryKey: [kind, 'list'] }), at - now);
  };
  const renew = (key: QueryKey, newest: Newest) => {
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
  const kept = new Map<string, Newest>(); // the changes of each kind that answers may not know yet
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
    for (const [key, page] of client.getQueriesData<Page>({ queryKey: [kind, 'list'] })) {
      for (const { meta } of page?.items ?? []) if (meta.id !== undefined && newest.has(meta.id)) shown.add(meta.id);
      renew(key, newest);
    }
    for (const id of newest.keys()) renew([kind, 'one', id], newest);
    if ([...newest].some(([id, e]) => e.type === 'remove' || !shown.has(id))) askAgain(kind);
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
