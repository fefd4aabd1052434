// @vitest-environment jsdom
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newQueryClient } from './api/session';
import { App } from './app';
import { routes } from './routes';

let asked: string[];

beforeEach(() => {
  localStorage.clear();
  asked = [];
  // A server that does not respond.
  vi.stubGlobal('fetch', (r: Request) => (asked.push(new URL(r.url).pathname), new Promise(() => undefined)));
});

afterEach(() => {
  cleanup();
  vi.restoreAllMocks();
});

function opened(hash: string) {
  location.hash = hash;
  const loaded: string[] = [];
  for (const { path, Page } of routes)
    vi.spyOn(Page, 'load').mockImplementation(() => (loaded.push(path), Promise.resolve()));
  render(
    <QueryClientProvider client={newQueryClient()}>
      <App />
    </QueryClientProvider>,
  );
  return loaded;
}

test('a page is loaded while the server is asked who is signed in', () => {
  localStorage.setItem('basalt.signed-in', '1');
  expect(opened('#/instances/ins-000000000001/metrics?search=x')).toEqual(['/instances/:id/:tab?']);
  expect(asked).toEqual(expect.arrayContaining(['/portal/v1/healthz', '/portal/v1/whoami']));
});

test('nothing is loaded ahead for who is not signed in', async () => {
  const loaded = opened('#/instances');
  await screen.findByRole('heading', { name: 'Sign in' });
  expect(loaded).toEqual([]);
  expect(asked).not.toContain('/portal/v1/whoami');
});

test('who has to have one-time codes sees nothing else until they are set up', async () => {
  localStorage.setItem('basalt.signed-in', '1');
  vi.stubGlobal('fetch', (r: Request) => {
    const path = new URL(r.url).pathname;
    asked.push(path);
    const me = {
      key: 'ses-1',
      role: 'admin',
      name: 'ann@example.com',
      user: 'usr-1',
      hasPassword: true,
      totp: false,
      needsTotp: true,
    };
    return Promise.resolve(Response.json(path.endsWith('/whoami') ? me : { status: 'ok', revision: 1 }));
  });
  opened('#/instances');
  await screen.findByRole('heading', { name: 'Two-factor authentication required' });
  screen.getByRole('button', { name: 'Set up' });
  expect(screen.queryByRole('navigation')).toBeNull();
  expect(screen.getByRole<HTMLButtonElement>('button', { name: 'Continue' }).disabled).toBe(true);
});
