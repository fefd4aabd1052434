// A list's rows: drawn anew when their object or the columns are others. A list
// whose columns stay the same draws only what has changed.
import { Tbody, Td, Tr } from '@patternfly/react-table';
import { memo, type ReactNode } from 'react';

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
}

interface RowProps<T> {
  item: T;
  columns: Column<T>[];
}

function AnyRow<T>({ item, columns }: RowProps<T>) {
  return <Tr>{columns.map((c) => <Td key={c.title} dataLabel={c.title}>{c.cell(item)}</Td>)}</Tr>;
}

const Row = memo(AnyRow) as typeof AnyRow;

interface RowsProps<T> {
  items: T[];
  columns: Column<T>[];
  keyOf: (item: T) => string;
}

export function Rows<T>({ items, columns, keyOf }: RowsProps<T>) {
  return <Tbody>{items.map((item) => <Row key={keyOf(item)} item={item} columns={columns} />)}</Tbody>;
}
