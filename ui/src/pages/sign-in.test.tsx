// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newQueryClient } from '../api/session';
import { keepReturn } from '../lib/oidc';
import { SignIn } from './sign-in';
import { tokenIn } from '../parts/token';
import { Sso } from './sso';

type Answer = [status: number, body: object];
let answers: Record<string, Answer[]>;
let sent: unknown[];

beforeEach(() => {
  localStorage.clear();
  sent = [];
  answers = { 'GET /portal/v1/login/oidc': [[200, { names: ['keycloak'] }]] };
  vi.stubGlobal('fetch', async (r: Request) => {
    const { pathname } = new URL(r.url);
    if (r.method === 'POST') sent.push(await r.json());
    const [status, body] = answers[`${r.method} ${pathname}`]?.shift() ?? [
      404,
      { code: 'not_found', detail: pathname },
    ];
    return new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
  });
});

afterEach(() => cleanup());

const show = () =>
  render(
    <QueryClientProvider client={newQueryClient()}>
      <SignIn />
    </QueryClientProvider>,
  );

async function enter() {
  const user = userEvent.setup();
  await user.type(screen.getByLabelText(/E-mail address/), 'ann@example.com');
  await user.type(screen.getByLabelText(/Password/), 'secret');
  await user.click(screen.getByRole('button', { name: 'Sign in' }));
  return user;
}

test('a refused login shows what to do', async () => {
  answers['POST /portal/v1/login'] = [
    [401, { code: 'unauthenticated', detail: 'the password is wrong', hint: 'ask Bob' }],
  ];
  show();
  await enter();
  expect(await screen.findByText(/the password is wrong/)).toBeVisible();
  expect(screen.getByText('ask Bob')).toBeVisible();
  expect(localStorage.getItem('basalt.signed-in')).toBeNull();
});

test('a one-time code is asked for when it is needed', async () => {
  answers['POST /portal/v1/login'] = [
    [
      401,
      {
        code: 'unauthenticated',
        detail: 'a one-time code is needed',
        errors: [{ field: 'totp', detail: 'a one-time code is needed' }],
      },
    ],
    [201, { kind: 'Session' }],
  ];
  show();
  const user = await enter();
  const code = await screen.findByLabelText(/One-time code/);
  expect(code).toHaveFocus();
  await user.type(code, '123456');
  await user.click(screen.getByRole('button', { name: 'Verify' }));
  await waitFor(() => expect(localStorage.getItem('basalt.signed-in')).toBe('1'));
  expect(sent).toEqual([
    { email: 'ann@example.com', password: 'secret' },
    { email: 'ann@example.com', password: 'secret', totp: '123456' },
  ]);
});

test('who has several roles says which', async () => {
  answers['POST /portal/v1/login'] = [
    [
      400,
      {
        code: 'invalid',
        detail: 'you have several roles: which?',
        errors: [{ field: 'organization', detail: 'you have several roles: which?' }],
      },
    ],
    [201, { kind: 'Session' }],
  ];
  show();
  const user = await enter();
  await user.type(await screen.findByLabelText('Organization'), 'acme');
  await user.click(screen.getByRole('button', { name: 'Sign in' }));
  await waitFor(() =>
    expect(sent.at(-1)).toEqual({ email: 'ann@example.com', password: 'secret', organization: 'acme' }),
  );
});

test('identity providers have buttons', async () => {
  answers['POST /portal/v1/login/oidc'] = [
    [503, { code: 'unavailable', detail: 'the identity provider does not answer', hint: 'try again' }],
  ];
  show();
  await userEvent.click(await screen.findByRole('button', { name: 'Sign in with keycloak' }));
  expect(await screen.findByText(/does not answer/)).toBeVisible();
  expect(sent).toEqual([{ provider: 'keycloak', redirect: `${location.origin}/login/oidc` }]);
});

test('a link’s token', () => {
  expect(tokenIn('#/sso?token=bslt_link-1_ab')).toBe('bslt_link-1_ab');
  expect(tokenIn('#/sso')).toBeUndefined();
});

test('a return from an identity provider without a code', async () => {
  history.replaceState(null, '', '/login/oidc?state=s&error=access_denied');
  keepReturn();
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Sso />
    </QueryClientProvider>,
  );
  expect(await screen.findByText(/did not confirm your identity/)).toBeVisible();
  expect(sent).toEqual([]);
  expect(location.search).toBe('');
});
