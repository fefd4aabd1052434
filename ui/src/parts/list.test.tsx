// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/client';
import type { Collection, PageQuery } from '../api/collection';
import type { Bulk } from './list-bulk';
import { ObjectList, useListing, type Column } from './list';

interface Thing {
  meta: { id: string; name: string };
  size: number;
}

const things: Thing[] = ['a', 'b', 'c'].map((name, i) => ({ meta: { id: `id-${name}`, name }, size: 3 - i }));
const columns: Column<Thing>[] = [
  { id: 'name', sort: 'name', title: 'Name', cell: (x) => x.meta.name },
  { id: 'size', sort: 'spec.sizeBytes', title: 'Size', value: (x) => x.size, cell: (x) => `${x.size} GiB` },
];
const keyOf = (x: Thing) => x.meta.id;

beforeEach(() => {
  localStorage.clear();
  history.replaceState(null, '', '#/things');
});
afterEach(cleanup);

function Paged({ of, bulk }: { of: Collection<Thing>; bulk?: Bulk<Thing>[] }) {
  const list = useListing(of);
  return (
    <ObjectList name="things" label="Things" columns={columns} list={list} keyOf={keyOf} bulk={bulk} empty="Nothing" />
  );
}

function show(bulk?: Bulk<Thing>[], left = things) {
  const asked: PageQuery[] = [];
  const of: Collection<Thing> = {
    kind: 'Thing',
    read: (q) => (asked.push(q), Promise.resolve({ items: left })),
  };
  render(
    <QueryClientProvider client={new QueryClient()}>
      <Paged of={of} bulk={bulk} />
    </QueryClientProvider>,
  );
  return asked;
}

test('a header sorts on the server, and the address says so', async () => {
  const asked = show();
  await userEvent.click(await screen.findByRole('button', { name: 'Size' }));
  expect(location.hash).toBe('#/things?sort=spec.sizeBytes');
  await userEvent.click(screen.getByRole('button', { name: 'Size' }));
  expect(location.hash).toBe('#/things?sort=-spec.sizeBytes');
  await waitFor(() => expect(asked.at(-1)?.sort).toBe('-spec.sizeBytes'));
  expect(asked[0]?.sort).toBe('name');
  expect(screen.getByRole('columnheader', { name: 'Size' }).getAttribute('aria-sort')).toBe('descending');
});

test('labels narrow with Enter, and are taken from the address', async () => {
  history.replaceState(null, '', '#/things?labels=team%3Dvision&search=x');
  const asked = show();
  const labels = await screen.findByRole<HTMLInputElement>('textbox', { name: 'Filter by labels' });
  expect(labels.value).toBe('team=vision');
  expect(asked[0]).toMatchObject({ labelSelector: 'team=vision', search: 'x' });
  await userEvent.clear(labels);
  await userEvent.type(labels, '!gone{Enter}');
  await waitFor(() => expect(asked.at(-1)?.labelSelector).toBe('!gone'));
});

test('columns that are chosen stay so', async () => {
  show();
  await userEvent.click(await screen.findByRole('button', { name: 'View' }));
  await userEvent.click(screen.getByRole('checkbox', { name: 'Size' }));
  await userEvent.click(screen.getByRole('checkbox', { name: 'ID' }));
  cleanup();
  show();
  await screen.findByRole('columnheader', { name: 'ID' });
  expect(screen.queryByRole('columnheader', { name: 'Size' })).toBeNull();
});

test('many are deleted once it is sure, and what fails is named and tried again', async () => {
  let refuse = true;
  const run = vi.fn((x: Thing) =>
    x.meta.name === 'b' && refuse
      ? Promise.reject(new ApiError({ code: 'conflict', detail: 'b is in use' }))
      : Promise.resolve(),
  );
  show([{ id: 'delete', text: 'Delete', help: 'All is lost.', danger: true, applies: (x) => x.size < 3, run }]);
  await userEvent.click(await screen.findByRole('checkbox', { name: 'Select all rows on this page' }));
  await userEvent.click(within(screen.getByRole('toolbar')).getByRole('button', { name: 'Delete' }));
  const dialog = within(screen.getByRole('dialog'));
  dialog.getByText('Delete: 2 objects');
  dialog.getByText(/^1 selected object is skipped/);
  expect(dialog.getByRole<HTMLButtonElement>('button', { name: 'Delete' }).disabled).toBe(true);
  await userEvent.type(dialog.getByRole('textbox'), '2{Enter}');
  await dialog.findByText(/b is in use/);
  expect(run.mock.calls.map(([x]) => x.meta.name)).toEqual(['b', 'c']);
  refuse = false;
  await userEvent.click(dialog.getByRole('button', { name: 'Try again' }));
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
  expect(run.mock.calls.map(([x]) => x.meta.name)).toEqual(['b', 'c', 'b']);
});

test('the page is in the address, and restored by a link and by going back', async () => {
  const asked: PageQuery[] = [];
  const of: Collection<Thing> = {
    kind: 'Thing',
    read: (q) => (
      asked.push(q),
      Promise.resolve({
        items: things,
        ...(q.limit === 1 ? { total: 60 } : { continue: { '': 'two', two: 'three' }[q.continue ?? ''] }),
      })
    ),
  };
  const open = () =>
    render(
      <QueryClientProvider client={new QueryClient()}>
        <Paged of={of} />
      </QueryClientProvider>,
    );
  const last = () => asked.filter((q) => q.limit !== 1).at(-1);
  const next = async () => userEvent.click(await screen.findByRole('button', { name: 'Next page' }));
  open();
  await next();
  await screen.findByText('Page 2');
  await next();
  await screen.findByText('Page 3');
  const third = location.hash;
  expect(third).toMatch(/page=3&after=[a-z0-9]+\.three$/);
  await userEvent.click(screen.getByRole('button', { name: 'Previous page' }));
  await screen.findByText('Page 2');
  await waitFor(() => expect(last()?.continue).toBe('two'));

  // Another order has other pages.
  await userEvent.click(screen.getByRole('button', { name: 'Size' }));
  await waitFor(() => expect(last()).not.toHaveProperty('continue'));
  expect(location.hash).toBe('#/things?sort=spec.sizeBytes');

  cleanup();
  history.replaceState(null, '', third);
  open();
  await screen.findByText('Page 3');
  expect(last()?.continue).toBe('three');
  // The page before is not known to a link.
  await userEvent.click(screen.getByRole('button', { name: 'Previous page' }));
  await screen.findByText('Page 1');
  expect(location.hash).toBe('#/things');

  cleanup();
  history.replaceState(null, '', third.replace('page=3', 'page=3&search=a'));
  open();
  await screen.findByText('Page 1');
  expect(last()?.continue).toBeUndefined();
});
