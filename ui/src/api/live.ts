// What a change does to what the pages have read. Lists keep their server's
// order and pages: an object that a list shows is replaced in place; of one
// that no list shows, the lists are asked for again, soon and once.
import type { QueryClient } from '@tanstack/react-query';
import type { WatchedObject, WatchEvent } from './watch';

interface Page {
  items: WatchedObject[];
}

const revision = (o: WatchedObject) => o.meta.revision ?? 0;

/** replaced is a page with an object's newer form, or the same page. */
export function replaced(page: Page, o: WatchedObject): Page {
  const i = page.items.findIndex((x) => x.meta.id === o.meta.id);
  const old = page.items[i];
  if (!old || revision(old) >= revision(o)) return page;
  return { ...page, items: page.items.with(i, o) };
}

/** removed is a page without an object, or the same page. */
export function removed(page: Page, id: string | undefined): Page {
  const items = page.items.filter((x) => x.meta.id !== id);
  return items.length === page.items.length ? page : { ...page, items };
}

const soon = 250; // ms

/** applier puts changes into a client's cache. */
export function applier(client: QueryClient): (e: WatchEvent) => void {
  const stale = new Map<string, ReturnType<typeof setTimeout>>();
  const askAgain = (kind: string) => {
    if (stale.has(kind)) return;
    stale.set(kind, setTimeout(() => {
      stale.delete(kind);
      void client.invalidateQueries({ queryKey: [kind, 'list'] });
    }, soon));
  };
  return ({ type, object }) => {
    if (type === 'sync') {
      void client.invalidateQueries();
      return;
    }
    const { kind } = object;
    const one = [kind, 'one', object.meta.id];
    const old = client.getQueryData<WatchedObject | null>(one);
    let shown = false;
    for (const [key, page] of client.getQueriesData<Page>({ queryKey: [kind, 'list'] })) {
      if (!page) continue;
      shown ||= page.items.some((x) => x.meta.id === object.meta.id);
      client.setQueryData(key, type === 'put' ? replaced(page, object) : removed(page, object.meta.id));
    }
    if (type === 'remove') {
      if (old !== undefined) client.setQueryData(one, null);
      askAgain(kind);
      return;
    }
    if (old && revision(old) < revision(object)) client.setQueryData(one, object);
    if (!shown) askAgain(kind);
  };
}
