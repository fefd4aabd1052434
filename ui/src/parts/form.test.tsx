// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { cleanup, fireEvent, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { useState } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { refused } from '../api/client';
import { Form } from './form';
import { TextField } from './text-field';

afterEach(cleanup);

function Flavor({ send, error, long }: { send: (body: unknown) => void; error?: unknown; long?: boolean }) {
  const [f, set] = useState({ name: '', vcpus: '', memory: '' });
  const body = {
    meta: { name: f.name },
    spec: { vcpus: Number(f.vcpus), memoryBytes: Number(f.memory) * 2 ** 20 },
  };
  const field = (name: keyof typeof f) => ({
    id: name,
    label: name,
    value: f[name],
    onChange: (v: string) => set((x) => ({ ...x, [name]: v })),
  });
  return (
    <Form schema="Flavor" body={body} busy={false} error={error} onSubmit={() => send(body)} long={long}>
      <TextField {...field('name')} path="meta.name" required />
      <TextField {...field('vcpus')} path="spec.vcpus" help="of the host" required />
      <TextField {...field('memory')} path="spec.memoryBytes" />
      <a href="#elsewhere">elsewhere</a>
      <button type="submit">Save</button>
    </Form>
  );
}

const input = (name: string) => screen.getByRole('textbox', { name: new RegExp(name) });
const save = () => userEvent.click(screen.getByRole('button', { name: 'Save' }));

test('all that is wrong is said at once, and the focus goes to the first', async () => {
  const send = vi.fn();
  render(<Flavor send={send} />);
  await userEvent.type(input('vcpus'), '300');
  await userEvent.tab();
  expect(screen.queryByText('Enter 1 to 256.')).toBeNull(); // not before the first attempt
  await save();
  expect(input('name')).toHaveFocus();
  expect(input('name')).toBeInvalid();
  expect(input('name')).toHaveAccessibleDescription(expect.stringContaining('Required.'));
  expect(input('vcpus')).toHaveAccessibleDescription(expect.stringContaining('Enter 1 to 256.'));
  expect(input('memory')).toHaveAccessibleDescription(expect.stringContaining('Enter at least 64 MiB.'));
  expect(screen.getByRole('alert')).toHaveTextContent('Correct 3 fields');
  expect(send).not.toHaveBeenCalled();

  // Corrected errors disappear at once; new ones appear when the user leaves the field.
  await userEvent.type(input('name'), 'a');
  expect(input('name')).toBeValid();
  await userEvent.type(input('name'), '!');
  expect(input('name')).toBeValid();
  await userEvent.tab();
  expect(await screen.findByText(/^Enter up to 63/)).toBeVisible();

  await userEvent.click(screen.getByRole('button', { name: 'memory' })); // in the summary
  expect(input('memory')).toHaveFocus();
});

test('what is right is sent, once', async () => {
  const send = vi.fn();
  render(<Flavor send={send} />);
  await userEvent.type(input('name'), 'a');
  await userEvent.type(input('vcpus'), '2');
  await userEvent.type(input('memory'), '64');
  const button = screen.getByRole('button', { name: 'Save' });
  fireEvent.click(button);
  fireEvent.click(button);
  await waitFor(() => expect(send).toHaveBeenCalled());
  expect(send).toHaveBeenCalledExactlyOnceWith({ meta: { name: 'a' }, spec: { vcpus: 2, memoryBytes: 64 * 2 ** 20 } });
});

const wrong = (...fields: string[]) =>
  refused(400, {
    code: 'invalid',
    detail: `${fields[0]} is taken`,
    errors: fields.map((field) => ({ field, detail: `${field} is taken`, hint: 'take another' })),
  });

test("the server's faults stand at their fields until these are changed", async () => {
  const { rerender } = render(<Flavor send={() => undefined} />);
  await userEvent.type(input('name'), 'a');
  await userEvent.type(input('vcpus'), '2');
  rerender(<Flavor send={() => undefined} error={wrong('spec.vcpus')} />);
  expect(await screen.findByText('spec.vcpus is taken: take another')).toBeVisible();
  expect(input('vcpus')).toHaveFocus();
  expect(input('name')).toHaveValue('a');
  await userEvent.type(input('name'), 'b');
  expect(input('vcpus')).toBeInvalid();
  await userEvent.type(input('vcpus'), '4');
  expect(input('vcpus')).toHaveAccessibleDescription(expect.stringContaining('of the host'));
});

test('what no field shows stands above them', async () => {
  const { rerender } = render(<Flavor send={() => undefined} />);
  rerender(<Flavor send={() => undefined} error={wrong('spec.gpus')} />);
  expect(await screen.findByText(/spec.gpus is taken/)).toBeVisible();
});

test('who leaves a long form with changes is asked', async () => {
  const asked = vi.spyOn(window, 'confirm').mockReturnValue(false);
  render(<Flavor send={() => undefined} long />);
  await userEvent.click(screen.getByRole('link'));
  expect(asked).not.toHaveBeenCalled();
  location.hash = '';
  await userEvent.type(input('name'), 'a');
  await userEvent.click(screen.getByRole('link'));
  expect(asked).toHaveBeenCalledOnce();
  expect(location.hash).not.toBe('#elsewhere');
});
