// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newQueryClient } from '../api/session';
import { SignUp } from './sign-up';

type Answer = [status: number, body: object];
let answers: Record<string, Answer[]>;
let sent: unknown[];

beforeEach(() => {
  localStorage.clear();
  sent = [];
  answers = {};
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

const to = vi.fn();

const open = { enabled: true, termsURL: 'https://example.com/terms', termsVersion: '2026-03' };

function show(hash = '#/sign-up', info: object = open) {
  answers['GET /portal/v1/sign-up'] = [[200, info]];
  history.replaceState(null, '', hash.startsWith('#') ? `/${hash}` : hash);
  render(
    <QueryClientProvider client={newQueryClient()}>
      <SignUp to={to} />
    </QueryClientProvider>,
  );
  return userEvent.setup();
}

test('an address is asked for, and a link is on its way', async () => {
  answers['POST /portal/v1/sign-up'] = [[202, { email: 'ann@example.com' }]];
  const user = show();
  await user.type(await screen.findByLabelText(/E-mail address/), 'ann@example.com ');
  await user.click(screen.getByRole('button', { name: 'Send the link' }));
  expect(await screen.findByText(/on its way to ann@example.com/)).toBeVisible();
  expect(sent).toEqual([{ email: 'ann@example.com' }]);
});

test('a link that is opened in the same tab is followed', async () => {
  show();
  await screen.findByLabelText(/E-mail address/);
  history.replaceState(null, '', '/#/sign-up?token=t0ken');
  fireEvent(window, new HashChangeEvent('hashchange'));
  expect(await screen.findByLabelText(/Organization/)).toBeVisible();
  expect(location.hash).toBe('#/sign-up');
});

test('the link asks for the rest, and needs the terms', async () => {
  answers['POST /portal/v1/sign-up/finish'] = [
    [409, { code: 'already_exists', detail: 'organization acme already exists', field: 'organization' }],
    [201, {}],
  ];
  answers['GET /portal/v1/healthz'] = [[200, { revision: 1 }]];
  const user = show('#/sign-up?token=t0ken');
  await user.type(await screen.findByLabelText(/Organization/), 'acme');
  await user.type(screen.getByLabelText(/Password/), 'correct horse battery');
  expect(location.hash).toBe('#/sign-up');
  const create = screen.getByRole('button', { name: 'Create the account' });
  expect(create).toBeDisabled();
  expect(screen.getByRole('link', { name: /terms of service/ })).toHaveAttribute('href', 'https://example.com/terms');
  await user.click(screen.getByRole('checkbox'));
  await user.click(create);
  expect(await screen.findByText(/already exists/)).toBeVisible();
  await user.click(create);
  await vi.waitFor(() => expect(localStorage.getItem('basalt.signed-in')).not.toBeNull());
  expect(sent[1]).toEqual({
    token: 't0ken',
    password: 'correct horse battery',
    organization: 'acme',
    displayName: '',
    terms: '2026-03',
  });
});

test('where nobody can sign up, nothing is asked', async () => {
  show('#/sign-up', { enabled: false });
  expect(await screen.findByText(/Nobody can create an account here/)).toBeVisible();
  expect(screen.queryByRole('textbox')).toBeNull();
});

const guarded = { ...open, captcha: 'turnstile', siteKey: '0x4AAA' };

test('a captcha is solved on the page that lets it run', async () => {
  show('#/sign-up', guarded);
  await vi.waitFor(() => expect(to).toHaveBeenCalledExactlyOnceWith('/sign-up#/sign-up'));
  expect(screen.queryByRole('textbox')).toBeNull();
});

test('without a solved captcha nothing is sent, and one counts once', async () => {
  answers['POST /portal/v1/sign-up'] = [
    [400, { code: 'invalid', detail: 'the captcha was not solved', field: 'captcha' }],
  ];
  const rendered: { sitekey: string; callback: (token: string) => void }[] = [];
  vi.stubGlobal('turnstile', { render: (_: HTMLElement, o: (typeof rendered)[number]) => rendered.push(o) });
  const user = show('/sign-up#/sign-up', guarded);
  await user.type(await screen.findByLabelText(/E-mail address/), 'ann@example.com');
  const submit = screen.getByRole('button', { name: 'Send the link' });
  expect(submit).toBeDisabled();
  const script = document.head.querySelector<HTMLScriptElement>('script[src^="https://challenges.cloudflare.com/"]');
  script?.dispatchEvent(new Event('load'));
  await vi.waitFor(() => expect(rendered).toHaveLength(1));
  expect(rendered[0]?.sitekey).toBe('0x4AAA');
  rendered[0]?.callback('solved');
  await vi.waitFor(() => expect(submit).toBeEnabled());
  await user.click(submit);
  expect(await screen.findByText(/the captcha was not solved/)).toBeVisible();
  expect(sent).toEqual([{ email: 'ann@example.com', captcha: 'solved' }]);
  await vi.waitFor(() => expect(rendered).toHaveLength(2));
  expect(submit).toBeDisabled();
});
