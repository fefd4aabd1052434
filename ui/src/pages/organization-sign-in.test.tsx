// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newQueryClient } from '../api/session';
import { OrganizationSignIn, organizationIn } from './organization-sign-in';

let asked: string[];
let sent: unknown[];

beforeEach(() => {
  asked = [];
  sent = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    const { pathname, searchParams } = new URL(r.url);
    const answer = (status: number, body: object) =>
      new Response(JSON.stringify(body), { status, headers: { 'Content-Type': 'application/json' } });
    if (pathname !== '/portal/v1/login/oidc') return answer(404, { code: 'not_found', detail: pathname });
    if (r.method === 'POST') {
      sent.push(await r.json());
      return answer(503, { code: 'unavailable', detail: 'the identity provider is not reachable' });
    }
    const organization = searchParams.get('organization') ?? '';
    asked.push(organization);
    return answer(200, { names: organization === 'acme' ? ['okta'] : [] });
  });
});

afterEach(() => cleanup());

const show = (path: string) =>
  render(
    <QueryClientProvider client={newQueryClient()}>
      <OrganizationSignIn path={path} />
    </QueryClientProvider>,
  );

test('the organization is in the address', () => {
  expect(organizationIn('/login')).toBe('');
  expect(organizationIn('/login/acme')).toBe('acme');
  expect(organizationIn('/login/top/mid')).toBe('top/mid');
  expect(organizationIn('/login/top%2Fmid')).toBe('top/mid');
  expect(organizationIn('/login/%E0%A4%A')).toBe('');
});

test('the sign-in names the organization of the address', async () => {
  show('/login/acme');
  await userEvent.click(await screen.findByRole('button', { name: 'Sign in with okta' }));
  await waitFor(() => expect(sent).toHaveLength(1));
  expect(sent[0]).toEqual({ provider: 'okta', organization: 'acme', redirect: `${location.origin}/login/oidc` });
  expect(await screen.findByText(/not reachable/)).toBeVisible();
});

test('an organization is entered, and one without providers says so', async () => {
  show('/login');
  expect(asked).toEqual([]);
  const user = userEvent.setup();
  await user.type(screen.getByLabelText(/Organization/), ' none ');
  await user.click(screen.getByRole('button', { name: 'Continue' }));
  expect(await screen.findByText(/none has no identity provider here/)).toBeVisible();
  expect(asked).toEqual(['none']);
  await user.clear(screen.getByLabelText(/Organization/));
  await user.type(screen.getByLabelText(/Organization/), 'acme');
  await user.click(screen.getByRole('button', { name: 'Continue' }));
  expect(await screen.findByRole('button', { name: 'Sign in with okta' })).toBeVisible();
});
