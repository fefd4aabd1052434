// What changes do to what the pages have read. Lists keep their server's order
// and pages: an object that a list shows is replaced in place; of one that no
// list shows, the lists are asked for again, soon and once. Changes of one frame
// are put in together, so that a thousand draw a page once.
import { notifyManager, type QueryClient } from '@tanstack/react-query';
import type { WatchedObject, WatchEvent } from './watch';

interface Page {
  items: WatchedObject[];
}

const revision = (o: WatchedObject) => o.meta.revision ?? 0;

/** newest are the last changes of each object of a kind. */
type Newest = Map<string, WatchEvent>;

/** changed is a page with objects' newer forms and without those that are gone, or the same page. */
export function changed(page: Page, newest: Newest): Page {
  let same = true;
  const items = page.items.flatMap((old) => {
    const e = newest.get(old.meta.id ?? '');
    if (!e || (e.type === 'put' && revision(old) >= revision(e.object))) return [old];
    same = false;
    return e.type === 'put' ? [e.object] : [];
  });
  return same ? page : { ...page, items };
}

const soon = 250; // ms
const pause = 2000; // ms between two questions for the same lists, however much changes

/** nextFrame runs f before the window is drawn again; a hidden one is not drawn. */
const nextFrame = (f: () => void) => void (document.hidden ? setTimeout(f, 50) : requestAnimationFrame(f));

/** applier puts changes into a client's cache. */
export function applier(client: QueryClient, later: (f: () => void) => void = nextFrame): (e: WatchEvent) => void {
  const asked = new Map<string, number>(); // when the lists of a kind are asked for
  const askAgain = (kind: string) => {
    const now = Date.now();
    const last = asked.get(kind) ?? 0;
    if (last > now) return;
    const at = Math.max(now + soon, last + pause);
    asked.set(kind, at);
    setTimeout(() => void client.invalidateQueries({ queryKey: [kind, 'list'] }), at - now);
  };
  const take = (kind: string, newest: Newest) => {
    const shown = new Set<string>();
    for (const [key, page] of client.getQueriesData<Page>({ queryKey: [kind, 'list'] })) {
      if (!page) continue;
      for (const { meta } of page.items) if (meta.id !== undefined && newest.has(meta.id)) shown.add(meta.id);
      const now = changed(page, newest);
      if (now !== page) client.setQueryData(key, now);
    }
    let unknown = false;
    for (const [id, { type, object }] of newest) {
      const one = [kind, 'one', id];
      const old = client.getQueryData<WatchedObject | null>(one);
      if (type === 'remove') {
        if (old !== undefined) client.setQueryData(one, null);
      } else if (old && revision(old) < revision(object)) client.setQueryData(one, object);
      unknown ||= type === 'remove' || !shown.has(id);
    }
    if (unknown) askAgain(kind);
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
