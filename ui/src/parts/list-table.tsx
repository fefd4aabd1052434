// A list's table, of up to 500 rows of which many change every second. A row is
// drawn anew when its object or the columns are others, and the browser lays out
// and paints only the groups of rows that are near. It is the browser's own
// table in PatternFly's clothes: PatternFly's cells are all drawn anew whenever
// their table is, and then each measures itself.
import '@patternfly/react-styles/css/components/Table/table.css';
import '@patternfly/react-styles/css/components/Table/table-grid.css';
import { memo, useDeferredValue, type CSSProperties, type ReactNode } from 'react';

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
  /** Its part of a long table's width, 1 unless said; short tables measure what is in them. */
  share?: number;
}

/** as says a part's role outright: a long table is not laid out as one, and would lose them. */
const as = (role: string) => ({ role });

interface RowProps<T> {
  item: T;
  columns: Column<T>[];
}

function AnyRow<T>({ item, columns }: RowProps<T>) {
  return (
    <tr {...as('row')} className="pf-v6-c-table__tr">
      {columns.map((c) => (
        <td key={c.title} {...as('gridcell')} className="pf-v6-c-table__td" data-label={c.title}>
          {c.cell(item)}
        </td>
      ))}
    </tr>
  );
}

const Row = memo(AnyRow) as typeof AnyRow;

interface TableProps<T> {
  label: string;
  items: T[];
  columns: Column<T>[];
  keyOf: (item: T) => string;
}

const group = 20; // rows that are laid out together
const long = 100; // rows, from which on the columns' widths are given: to measure all rows takes longer than a frame

export function Table<T>({ label, items, columns: given, keyOf }: TableProps<T>) {
  // Pages make their columns anew whenever something changes. Objects that have
  // changed are shown at once, in the columns of before; then the others are
  // drawn, a few at a time.
  const columns = useDeferredValue(given);
  const widths = { '--basalt-columns': columns.map((c) => `minmax(0, ${c.share ?? 1}fr)`).join(' ') } as CSSProperties;
  const isLong = items.length > long;
  return (
    <table
      {...as('grid')}
      aria-label={label}
      className={`pf-v6-c-table pf-m-compact pf-m-grid-md${isLong ? ' basalt-long' : ''}`}
      style={isLong ? widths : undefined}
    >
      <thead {...as('rowgroup')} className="pf-v6-c-table__thead">
        <tr {...as('row')} className="pf-v6-c-table__tr">
          {columns.map((c) => (
            <th key={c.title} {...as('columnheader')} scope="col" className="pf-v6-c-table__th pf-m-wrap">
              {c.title}
            </th>
          ))}
        </tr>
      </thead>
      {Array.from({ length: Math.ceil(items.length / group) }, (_, n) => (
        <tbody key={n} {...as('rowgroup')} className="pf-v6-c-table__tbody">
          {items.slice(n * group, (n + 1) * group).map((item) => (
            <Row key={keyOf(item)} item={item} columns={columns} />
          ))}
        </tbody>
      ))}
    </table>
  );
}
