// A list's rows. Of a long list only the parts near the window are drawn; the
// others keep their place, so that scrolling and changes cost the same whatever
// its length.
import { Tbody, Td, Tr } from '@patternfly/react-table';
import { memo, useEffect, useRef, useState, type ReactNode } from 'react';

export interface Column<T> {
  title: string;
  cell: (item: T) => ReactNode;
}

/** long lists are drawn in parts. */
export const long = 100;
const part = 25; // rows
const row = 48; // px, until it is known
const near = '600px'; // drawn before it is seen

interface RowProps<T> {
  item: T;
  columns: Column<T>[];
  index?: number;
}

function AnyRow<T>({ item, columns, index }: RowProps<T>) {
  return <Tr aria-rowindex={index}>{columns.map((c) => <Td key={c.title} dataLabel={c.title}>{c.cell(item)}</Td>)}</Tr>;
}

// A row is drawn anew when its object or the columns are others: a list whose
// columns stay the same draws only what has changed.
const Row = memo(AnyRow) as typeof AnyRow;

interface RowsProps<T> {
  items: T[];
  columns: Column<T>[];
  keyOf: (item: T) => string;
}

function Part<T>({ items, columns, keyOf, first }: RowsProps<T> & { first: number }) {
  const body = useRef<HTMLTableSectionElement>(null);
  const height = useRef(items.length * row); // px, when it was last drawn
  const [drawn, setDrawn] = useState(first === 0);
  useEffect(() => {
    const el = body.current;
    if (!el) return;
    const watch = new IntersectionObserver(([e]) => {
      if (!e) return;
      if (!e.isIntersecting && el.rows.length > 1) height.current = el.offsetHeight;
      setDrawn(e.isIntersecting);
    }, { rootMargin: near });
    watch.observe(el);
    return () => watch.disconnect();
  }, []);
  return (
    <Tbody innerRef={body}>
      {drawn
        ? items.map((item, i) => <Row key={keyOf(item)} item={item} columns={columns} index={first + i + 2} />)
        : <Tr aria-hidden><Td colSpan={columns.length} ref={(el) => { if (el) el.style.blockSize = `${height.current}px`; }} /></Tr>}
    </Tbody>
  );
}

export function Rows<T>({ items, columns, keyOf }: RowsProps<T>) {
  if (items.length <= long) return <Tbody>{items.map((item) => <Row key={keyOf(item)} item={item} columns={columns} />)}</Tbody>;
  const firsts = Array.from({ length: Math.ceil(items.length / part) }, (_, n) => n * part);
  return firsts.map((first) => <Part key={first} items={items.slice(first, first + part)} columns={columns} keyOf={keyOf} first={first} />);
}
