// The selected rows of a list: keys of rows that are shown.

export type Selection = ReadonlySet<string>;

export const nobody: Selection = new Set();

/** kept returns the selected keys that are still shown; the same set if all are. */
export function kept(selected: Selection, shown: readonly string[]): Selection {
  const there = new Set(shown);
  const left = [...selected].filter((k) => there.has(k));
  return left.length === selected.size ? selected : new Set(left);
}

export function toggled(selected: Selection, key: string): Selection {
  const next = new Set(selected);
  if (!next.delete(key)) next.add(key);
  return next;
}

/** between adds all rows from one to another, in the displayed order. */
export function between(selected: Selection, shown: readonly string[], from: string, to: string): Selection {
  const [a, b] = [shown.indexOf(from), shown.indexOf(to)].sort((x, y) => x - y);
  if (a === undefined || b === undefined || a < 0) return toggled(selected, to);
  return new Set([...selected, ...shown.slice(a, b + 1)]);
}

export type Extent = 'none' | 'some' | 'all';

export const extent = (selected: Selection, shown: readonly string[]): Extent =>
  selected.size === 0 ? 'none' : shown.every((k) => selected.has(k)) ? 'all' : 'some';
