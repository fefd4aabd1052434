// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/client';
import type { Resource } from '../api/resource';
import { Conflict } from './conflict';
import { useEdit } from './edit';

afterEach(cleanup);

interface Thing {
  revision: number;
  name: string;
  note: string;
  /** A field that no form contains. */
  status: string;
}

/** serverOf simulates a server with one object. */
function serverOf(thing: Thing) {
  const server = { thing: thing as Thing | null, puts: 0 };
  const of: Resource<Thing> = {
    id: () => 't',
    revision: (x) => x.revision,
    path: () => '/v1/things/t',
    key: () => ['Thing', 'one', 't'],
    lists: ['Thing', 'list'],
    get: () => Promise.resolve(server.thing),
    patch: (_, __, body) => {
      server.puts++;
      if (!server.thing || body.revision !== server.thing.revision)
        return Promise.reject(new ApiError({ code: 'conflict', detail: 'another revision' }));
      return Promise.resolve((server.thing = { ...body, status: server.thing.status, revision: body.revision + 1 }));
    },
    partial: (_, now) => now,
    post: (body) => Promise.resolve(body),
  };
  const others = (change: Partial<Thing>) =>
    (server.thing = { ...server.thing!, ...change, revision: server.thing!.revision + 1 });
  return { server, of, others };
}

function Form({ of, object, onSaved }: { of: Resource<Thing>; object: Thing; onSaved: (t: Thing) => void }) {
  const edit = useEdit<Thing, { name: string; note: string }>({
    of,
    object,
    fields: (o) => ({ name: o?.name ?? '', note: o?.note ?? '' }),
    body: (o = object, form) => ({ ...o, ...form }),
    onSaved,
  });
  return (
    <form onSubmit={(e) => (e.preventDefault(), edit.submit())}>
      <Conflict edit={edit} label={(f) => `the ${f}`} />
      <input aria-label="name" value={edit.form.name} onChange={(e) => edit.set('name')(e.target.value)} />
      <input aria-label="note" value={edit.form.note} onChange={(e) => edit.set('note')(e.target.value)} />
      <button disabled={edit.gone}>Save</button>
    </form>
  );
}

const begun = { revision: 1, name: 'old', note: 'old note', status: 'new' };
const field = (name: string) => screen.getByLabelText<HTMLInputElement>(name);

async function open(note: string) {
  const user = userEvent.setup();
  const client = new QueryClient({ defaultOptions: { queries: { retry: false, staleTime: Infinity } } });
  client.setQueryData(['Thing', 'one', 't'], begun);
  const saved = vi.fn<(t: Thing) => void>();
  const { server, of, others } = serverOf(begun);
  render(
    <QueryClientProvider client={client}>
      <Form of={of} object={begun} onSaved={saved} />
    </QueryClientProvider>,
  );
  await user.clear(field('note'));
  await user.type(field('note'), note);
  const watched = () => act(() => void client.setQueryData(['Thing', 'one', 't'], server.thing));
  return { user, saved, server, others, watched };
}

test('a status that changes by itself is no conflict', async () => {
  const { user, saved, server, others } = await open('mine');
  others({ status: 'ready' });
  await user.click(screen.getByText('Save'));
  await waitFor(() => expect(saved).toHaveBeenCalledWith({ revision: 3, name: 'old', note: 'mine', status: 'ready' }));
  expect(server.puts).toBe(2);
});

test('what only the other has changed is taken, told at the save, and not overwritten', async () => {
  const { user, saved, others } = await open('mine');
  others({ name: 'theirs' });
  await user.click(screen.getByText('Save'));
  const alert = await screen.findByRole('alert');
  expect(alert.textContent).toContain('the name');
  expect(document.activeElement).toBe(alert);
  expect([field('name').value, field('note').value]).toEqual(['theirs', 'mine']);
  expect(saved).not.toHaveBeenCalled();
  await user.click(screen.getByText('Save'));
  await waitFor(() => expect(saved).toHaveBeenCalledWith({ revision: 3, name: 'theirs', note: 'mine', status: 'new' }));
});

test('what both have changed is told when the watch tells, and must be decided', async () => {
  const { user, saved, server, others, watched } = await open('mine');
  others({ note: 'theirs' });
  watched();
  await screen.findByText('theirs');
  expect(document.activeElement).toBe(field('note')); // the focus is not moved while typing
  await user.click(screen.getByText('Save'));
  expect(document.activeElement).toBe(screen.getByRole('alert'));
  expect(server.puts).toBe(0);
  await user.click(screen.getByRole('button', { name: 'Keep mine: the note' }));
  expect(document.activeElement).toBe(screen.getByRole('alert'));
  await user.click(screen.getByText('Save'));
  await waitFor(() => expect(saved).toHaveBeenCalledWith({ revision: 3, name: 'old', note: 'mine', status: 'new' }));
});

test('theirs can be taken, and a later change of another field does not decide it', async () => {
  const { user, others, watched } = await open('mine');
  others({ note: 'theirs' });
  watched();
  others({ name: 'renamed' });
  watched();
  await user.click(await screen.findByRole('button', { name: 'Use theirs: the note' }));
  expect([field('name').value, field('note').value]).toEqual(['renamed', 'theirs']);
});

test('what is gone cannot be saved, and what was typed stays', async () => {
  const { server, watched } = await open('mine');
  server.thing = null;
  watched();
  await screen.findByText('Someone else deleted this');
  expect(screen.getByText<HTMLButtonElement>('Save').disabled).toBe(true);
  expect(field('note').value).toBe('mine');
});
