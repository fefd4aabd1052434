// How somebody wants to see a list: kept in the browser, by the list's name.

export type Density = 'comfortable' | 'compact';

export interface View {
  density: Density;
  /** Columns whose presence was chosen; of the others their own wish counts. */
  columns: Readonly<Record<string, boolean>>;
}

export const plain: View = { density: 'compact', columns: {} };

const mostColumns = 64;

/** viewOf what was kept, whatever stands there: others may have written it. */
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
  /** Only shown when it is chosen. */
  extra?: boolean;
}

/** shownColumns are those that a view shows; the first always, as it says what a row is. */
export const shownColumns = <C extends Chosen>(columns: readonly C[], view: View): C[] =>
  columns.filter((c, i) => i === 0 || (Object.hasOwn(view.columns, c.id) ? view.columns[c.id] : !c.extra));
