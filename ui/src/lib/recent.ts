// The pages opened by the search, newest first. They are stored in this browser only.
export interface Recent {
  href: string;
  name: string;
}

const stored = 'basalt.recent';
const most = 6;

/** withRecent returns the list with one more in front, each address once. */
export const withRecent = (list: Recent[], r: Recent): Recent[] =>
  [r, ...list.filter((x) => x.href !== r.href)].slice(0, most);

/** parseRecent parses what was stored; invalid entries, and those that lead elsewhere, are dropped. */
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
