// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { newQueryClient } from '../api/session';
import { ForgotPassword } from './forgot-password';

afterEach(() => cleanup());

async function ask(status: number, answer: object) {
  const sent: [body: unknown, language: string | null][] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    if (r.method !== 'POST') return new Response('{}', { headers: { 'Content-Type': 'application/json' } });
    sent.push([await r.json(), r.headers.get('Accept-Language')]);
    return new Response(JSON.stringify(answer), { status, headers: { 'Content-Type': 'application/json' } });
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <ForgotPassword />
    </QueryClientProvider>,
  );
  const user = userEvent.setup();
  await user.type(screen.getByLabelText(/E-mail address/), ' ann@example.com ');
  await user.click(screen.getByRole('button', { name: 'Send link' }));
  return sent;
}

test('a link is asked for, in the language of the portal', async () => {
  const sent = await ask(202, { email: 'ann@example.com' });
  expect(await screen.findByRole('status')).toHaveTextContent('If ann@example.com has a password here');
  expect(sent).toEqual([[{ email: 'ann@example.com' }, 'en']]);
});

test('what is wrong stands at its field', async () => {
  await ask(400, { code: 'invalid', detail: 'must be an e-mail address', field: 'email' });
  expect(await screen.findByText(/must be an e-mail address/)).toBeVisible();
  expect(screen.queryByRole('status')).toBeNull();
});
