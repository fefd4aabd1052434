// @vitest-environment jsdom
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { ApiError } from '../api/client';
import { clashes, Conflict, rebased, useEdit } from './conflict';

afterEach(cleanup);

test('one’s own changes are put over theirs', () => {
  const base = { name: 'a', size: 1, tags: ['x'] };
  expect(rebased(base, { ...base, size: 2 }, { name: 'b', size: 1, tags: ['x', 'y'] })).toEqual({ name: 'b', size: 2, tags: ['x', 'y'] });
  expect(clashes(base, { ...base, size: 2 }, { ...base, size: 3 })).toEqual(['size']);
  expect(clashes(base, { ...base, size: 2 }, { ...base, size: 2 })).toEqual([]);
});

interface Thing {
  revision: number;
  name: string;
  note: string;
}

function Form({ server, onSaved }: { server: { thing: Thing }; onSaved: (t: Thing) => void }) {
  const edit = useEdit<Thing, { name: string; note: string }>({
    object: { revision: 1, name: 'old', note: 'old note' },
    fields: ({ name, note }) => ({ name, note }),
    read: () => Promise.resolve(server.thing),
    save: (o, form) => (o.revision === server.thing.revision ? Promise.resolve({ ...form, revision: o.revision + 1 }) : Promise.reject(new ApiError({ code: 'conflict', message: 'revision 2, not 1' }))),
    onSaved,
  });
  return (
    <form onSubmit={(e) => (e.preventDefault(), edit.submit())}>
      <Conflict edit={edit} />
      <input aria-label="name" value={edit.form.name} onChange={(e) => edit.set('name', e.target.value)} />
      <input aria-label="note" value={edit.form.note} onChange={(e) => edit.set('note', e.target.value)} />
      <button>Save</button>
    </form>
  );
}

test('the second is told, keeps what was typed, loads the new and saves again', async () => {
  const user = userEvent.setup();
  const saved = vi.fn();
  render(<QueryClientProvider client={new QueryClient()}><Form server={{ thing: { revision: 2, name: 'theirs', note: 'old note' } }} onSaved={(t) => void saved(t)} /></QueryClientProvider>);
  await user.clear(screen.getByLabelText('note'));
  await user.type(screen.getByLabelText('note'), 'mine');
  await user.click(screen.getByText('Save'));
  await screen.findByText('Somebody else has changed this meanwhile');
  expect(screen.getByLabelText<HTMLInputElement>('note').value).toBe('mine');
  await user.click(screen.getByText('Load it and keep what I typed'));
  await vi.waitFor(() => expect(screen.getByLabelText<HTMLInputElement>('name').value).toBe('theirs'));
  expect(screen.getByLabelText<HTMLInputElement>('note').value).toBe('mine');
  await user.click(screen.getByText('Save'));
  await vi.waitFor(() => expect(saved).toHaveBeenCalledWith({ revision: 3, name: 'theirs', note: 'mine' }));
});
