// What one has gone to by the search, newest first. It stays in this browser.
export interface Recent {
  href: string;
  name: string;
}

const stored = 'basalt.recent';
const most = 6;

/** withRecent is the list with one more in front, each address once. */
export const withRecent = (list: Recent[], r: Recent): Recent[] =>
  [r, ...list.filter((x) => x.href !== r.href)].slice(0, most);

/** parseRecent is what was stored; what is broken, or leads elsewhere, is nothing. */
export function parseRecent(text: string | null): Recent[] {
  try {
    const list: unknown = JSON.parse(text ?? '[]');
    if (!Array.isArray(list)) return [];
    return list
      .filter((r: unknown): r is Recent => {
        const { href, name } = (r ?? {}) as Partial<Recent>;
        return typeof href === 'string' && href.startsWith('/') && typeof name === 'string';
      })
      .slice(0, most);
  } catch {
    return [];
  }
}

export const recent = (): Recent[] => parseRecent(localStorage.getItem(stored));
export const remember = (r: Recent): void => localStorage.setItem(stored, JSON.stringify(withRecent(recent(), r)));
