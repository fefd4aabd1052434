// The user's settings of a list: stored in the browser, by the list's name.

export type Density = 'comfortable' | 'compact';

export interface View {
  density: Density;
  /** Columns that the user has shown or hidden; the others have their default. */
  columns: Readonly<Record<string, boolean>>;
}

export const plain: View = { density: 'compact', columns: {} };

const mostColumns = 64;

/** viewOf parses a stored view and ignores anything invalid, as others may have written it. */
export function viewOf(text: string | null): View {
  let found: unknown;
  try {
    found = JSON.parse(text ?? '');
  } catch {
    return plain;
  }
  if (typeof found !== 'object' || found === null) return plain;
  const { density, columns } = found as { density?: unknown; columns?: unknown };
  const chosen = typeof columns === 'object' && columns !== null ? Object.entries(columns) : [];
  return {
    density: density === 'comfortable' ? 'comfortable' : 'compact',
    columns: Object.fromEntries(
      chosen.filter((c): c is [string, boolean] => typeof c[1] === 'boolean').slice(0, mostColumns),
    ),
  };
}

interface Chosen {
  id: string;
  /** Hidden by default. */
  extra?: boolean;
}

/** shownColumns returns the columns of a view; always with the first, which identifies the row. */
export const shownColumns = <C extends Chosen>(columns: readonly C[], view: View): C[] =>
  columns.filter((c, i) => i === 0 || (Object.hasOwn(view.columns, c.id) ? view.columns[c.id] : !c.extra));
