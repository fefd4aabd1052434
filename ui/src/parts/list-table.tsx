// A list's table, of up to 500 rows of which many change every second. A row is rendered again only when its object
// or the columns change, and the browser lays out and paints only the groups of rows near the viewport. It is a
// plain table with PatternFly's classes: PatternFly's own cells all render whenever their table does, and each then
// measures itself.
import '@patternfly/react-styles/css/components/Table/table.css';
import '@patternfly/react-styles/css/components/Table/table-grid.css';
import { ArrowsAltVIcon, LongArrowAltDownIcon, LongArrowAltUpIcon } from '@patternfly/react-icons';
import { memo, useDeferredValue, type CSSProperties, type ReactNode } from 'react';
import { useText } from '../i18n';
import { directionOf, turned, type Direction, type Value } from '../lib/order';
import { extent, type Selection } from '../lib/selection';
import type { Density } from '../lib/view';

export interface Column<T> {
  /** Identifies it for selection and sorting, in every language. */
  id: string;
  title: string;
  cell: (item: T) => ReactNode;
  /** The value to sort and export, if it is not the cell's text. */
  value?: (item: T) => Value;
  /** The field by which the server sorts it. */
  sort?: string;
  /** Contains a control: neither sorted nor exported. */
  control?: boolean;
  /** Hidden by default. */
  extra?: boolean;
  /** Its part of a long table's width, 1 by default; the columns of short tables fit their content. */
  share?: number;
}

/** as sets a part's role explicitly: a long table is not laid out as a table, and would lose its roles. */
const as = (role: string) => ({ role });

interface RowProps<T> {
  item: T;
  id: string;
  columns: Column<T>[];
  name?: string;
  selected: boolean;
  onSelect?: (key: string, range: boolean) => void;
}

function AnyRow<T>({ item, id, columns, name, selected, onSelect }: RowProps<T>) {
  const { t } = useText();
  return (
    <tr {...as('row')} className={`pf-v6-c-table__tr${selected ? ' pf-m-selected' : ''}`}>
      {onSelect && (
        <td {...as('gridcell')} className="pf-v6-c-table__td basalt-check">
          <input
            type="checkbox"
            className="pf-v6-c-check__input"
            aria-label={t('list.select', { name: name ?? id })}
            checked={selected}
            onChange={(e) => onSelect(id, (e.nativeEvent as MouseEvent).shiftKey)}
          />
        </td>
      )}
      {columns.map((c) => (
        <td key={c.id} {...as('gridcell')} className="pf-v6-c-table__td" data-label={c.title}>
          {c.cell(item)}
        </td>
      ))}
    </tr>
  );
}

const Row = memo(AnyRow) as typeof AnyRow;

/** Sorting is the order of a table, where it can be chosen. */
export interface Sorting<T> {
  sort: string;
  set: (sort: string) => void;
  fieldOf: (c: Column<T>) => string | undefined;
}

/** Selecting is the selection of rows, where that is possible. */
export interface Selecting<T> {
  selected: Selection;
  select: (key: string, range: boolean) => void;
  selectAll: () => void;
  nameOf: (item: T) => string;
}

interface TableProps<T> {
  label: string;
  items: T[];
  columns: Column<T>[];
  keyOf: (item: T) => string;
  density?: Density;
  sorting?: Sorting<T>;
  selecting?: Selecting<T>;
}

const group = 20; // rows that are laid out together
const long = 100; // rows from which the columns have fixed widths: measuring all rows takes longer than a frame

export function Table<T>(props: TableProps<T>) {
  const { label, items, columns: given, keyOf, density = 'compact', sorting, selecting } = props;
  const { t } = useText();
  // Pages create their columns again on every change. Changed objects are rendered at once with the previous
  // columns; then the other rows are rendered, a few at a time.
  const columns = useDeferredValue(given);
  const tracks = columns.map((c) => `minmax(0, ${c.share ?? 1}fr)`);
  const widths = { '--basalt-columns': (selecting ? ['3rem', ...tracks] : tracks).join(' ') } as CSSProperties;
  const isLong = items.length > long;
  const dense = density === 'compact' ? ' pf-m-compact' : '';
  const all = selecting && extent(selecting.selected, items.map(keyOf));
  return (
    <table
      {...as('grid')}
      aria-label={label}
      className={`pf-v6-c-table${dense} pf-m-grid-md${isLong ? ' basalt-long' : ''}`}
      style={isLong ? widths : undefined}
    >
      <thead {...as('rowgroup')} className="pf-v6-c-table__thead">
        <tr {...as('row')} className="pf-v6-c-table__tr">
          {selecting && (
            <th {...as('columnheader')} scope="col" className="pf-v6-c-table__th basalt-check">
              <input
                type="checkbox"
                className="pf-v6-c-check__input"
                aria-label={t('list.selectAll')}
                checked={all === 'all'}
                ref={(box) => {
                  if (box) box.indeterminate = all === 'some';
                }}
                onChange={selecting.selectAll}
              />
            </th>
          )}
          {columns.map((c) => (
            <Header key={c.id} column={c} sorting={sorting} />
          ))}
        </tr>
      </thead>
      {Array.from({ length: Math.ceil(items.length / group) }, (_, n) => (
        <tbody key={n} {...as('rowgroup')} className="pf-v6-c-table__tbody">
          {items.slice(n * group, (n + 1) * group).map((item) => (
            <Row
              key={keyOf(item)}
              id={keyOf(item)}
              item={item}
              columns={columns}
              name={selecting?.nameOf(item)}
              selected={selecting?.selected.has(keyOf(item)) ?? false}
              onSelect={selecting?.select}
            />
          ))}
        </tbody>
      ))}
    </table>
  );
}

const arrows: Record<Direction, React.ComponentType> = {
  ascending: LongArrowAltUpIcon,
  descending: LongArrowAltDownIcon,
};

function Header<T>({ column: c, sorting }: { column: Column<T>; sorting?: Sorting<T> }) {
  const field = sorting?.fieldOf(c);
  if (!sorting || !field)
    return (
      <th {...as('columnheader')} scope="col" className="pf-v6-c-table__th pf-m-wrap">
        {c.title}
      </th>
    );
  const direction = directionOf(sorting.sort, field);
  const Arrow = direction ? arrows[direction] : ArrowsAltVIcon;
  return (
    <th
      {...as('columnheader')}
      scope="col"
      aria-sort={direction ?? 'none'}
      className={`pf-v6-c-table__th pf-v6-c-table__sort pf-m-wrap${direction ? ' pf-m-selected' : ''}`}
    >
      <button type="button" className="pf-v6-c-table__button" onClick={() => sorting.set(turned(sorting.sort, field))}>
        <span className="pf-v6-c-table__button-content">
          <span className="pf-v6-c-table__text">{c.title}</span>
          <span className="pf-v6-c-table__sort-indicator">
            <Arrow />
          </span>
        </span>
      </button>
    </th>
  );
}
