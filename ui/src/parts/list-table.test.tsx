// @vitest-environment jsdom
import { act, cleanup, render, screen, within } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import { Table, type Column } from './list-table';

interface Thing {
  id: string;
  state: string;
}

const things = (n: number): Thing[] => Array.from({ length: n }, (_, i) => ({ id: `thing-${i}`, state: 'Running' }));
const keyOf = (x: Thing) => x.id;

afterEach(cleanup);

test('of many rows only the one that changes is drawn anew', () => {
  const state = vi.fn((x: Thing) => x.state);
  const columns: Column<Thing>[] = [
    { id: 'name', title: 'Name', cell: keyOf },
    { id: 'state', title: 'State', cell: state },
  ];
  const items = things(120);
  const { rerender } = render(<Table label="Things" items={items} columns={columns} keyOf={keyOf} />);
  state.mockClear();
  const changed = items.with(111, { id: 'thing-111', state: 'Stopped' });
  rerender(<Table label="Things" items={changed} columns={columns} keyOf={keyOf} />);
  expect(state.mock.calls).toEqual([[changed[111]]]);
  expect(screen.getByText('thing-111').closest('tr')?.textContent).toBe('thing-111Stopped');
});

test('columns that say something else are drawn in every row', () => {
  const items = things(30);
  const columns = (state: string): Column<Thing>[] => [
    { id: 'name', title: 'Name', cell: keyOf },
    { id: 'state', title: 'State', cell: () => state },
  ];
  const { rerender } = render(<Table label="Things" items={items} columns={columns('Läuft')} keyOf={keyOf} />);
  act(() => rerender(<Table label="Things" items={items} columns={columns('Steht')} keyOf={keyOf} />));
  expect(screen.queryByText('Läuft')).toBeNull();
  expect(screen.getAllByText('Steht')).toHaveLength(30);
});

test('all rows of a long table are there, with the roles of a table', () => {
  render(
    <Table
      label="Things"
      items={things(101)}
      columns={[
        { id: 'name', title: 'Name', cell: keyOf },
        { id: 'state', title: 'State', share: 2, cell: (x) => x.state },
      ]}
      keyOf={keyOf}
    />,
  );
  const table = screen.getByRole('grid', { name: 'Things' });
  expect(
    within(table)
      .getAllByRole('columnheader')
      .map((h) => h.textContent),
  ).toEqual(['Name', 'State']);
  expect(
    [...table.querySelectorAll('[role=rowgroup] > [role=row] > [role=gridcell]:first-child')].map((c) => c.textContent),
  ).toEqual(things(101).map(keyOf));
  expect(table.classList.contains('basalt-long')).toBe(true);
  expect(table.style.getPropertyValue('--basalt-columns')).toBe('minmax(0, 1fr) minmax(0, 2fr)');
});

test('a table of a hundred rows measures its columns itself', () => {
  render(
    <Table label="Things" items={things(100)} columns={[{ id: 'name', title: 'Name', cell: keyOf }]} keyOf={keyOf} />,
  );
  const table = screen.getByRole('grid');
  expect(table.classList.contains('basalt-long')).toBe(false);
  expect(table.hasAttribute('style')).toBe(false);
});
