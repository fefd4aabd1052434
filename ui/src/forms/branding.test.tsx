// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Branding } from '../api/branding';
import { newQueryClient } from '../api/session';
import { LogoForm } from './branding';

afterEach(() => (cleanup(), vi.unstubAllGlobals()));

interface Sent {
  method: string;
  ifMatch: string | null;
  type: string | null;
}

/** serving responds as the API does: changes of another revision than the current one are refused. */
function serving(now: Branding) {
  const sent: Sent[] = [];
  const server = { now, sent };
  vi.stubGlobal('fetch', (r: Request) => {
    if (r.method === 'GET') return Promise.resolve(Response.json(server.now));
    const ifMatch = r.headers.get('If-Match');
    sent.push({ method: r.method, ifMatch, type: r.headers.get('Content-Type') });
    if (ifMatch !== `"${server.now.revision ?? 0}"`)
      return Promise.resolve(
        Response.json({ code: 'precondition_failed', detail: 'the object has changed' }, { status: 412 }),
      );
    const revision = (server.now.revision ?? 0) + 1;
    server.now = { ...server.now, revision, logo: r.method === 'PUT' ? `logo${revision}` : undefined };
    return Promise.resolve(Response.json(server.now));
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <LogoForm />
    </QueryClientProvider>,
  );
  return server;
}

const png = new File(['PNG'], 'logo.png', { type: 'image/png' });
const current = () => screen.getByAltText('Current logo').getAttribute('src');
const remove = () => userEvent.click(screen.getByRole('button', { name: 'Remove logo' }));

test('a logo is replaced and removed only at the revision that is shown', async () => {
  const server = serving({});
  await screen.findByText('The default logo is used.');
  await waitFor(() => expect(screen.getByRole('button', { name: 'Choose file' })).toBeEnabled());
  await userEvent.upload(screen.getByLabelText('Logo'), png);
  await waitFor(() => expect(current()).toContain('logo1'));
  await remove();
  await screen.findByText('The default logo is used.');
  expect(server.sent).toEqual([
    { method: 'PUT', ifMatch: '"0"', type: 'image/png' },
    { method: 'DELETE', ifMatch: '"1"', type: null },
  ]);
});

test('a logo that someone else has replaced is shown, and not overwritten', async () => {
  const server = serving({ revision: 7, logo: 'old' });
  await screen.findByAltText('Current logo');
  server.now = { revision: 8, logo: 'theirs' };
  await userEvent.upload(screen.getByLabelText('Logo'), png);
  expect(await screen.findByText(/Someone else changed this in the meantime/)).toBeVisible();
  expect(screen.getByText(/repeat the change/)).toBeVisible();
  expect(current()).toContain('theirs');
  await remove(); // now of the logo that is shown
  await screen.findByText('The default logo is used.');
  expect(server.sent.map((s) => [s.method, s.ifMatch])).toEqual([
    ['PUT', '"7"'],
    ['DELETE', '"8"'],
  ]);
  expect(screen.queryByText(/Someone else changed this/)).toBeNull();
});

test('a change of another field of the branding does not prevent the change of a logo', async () => {
  const server = serving({ revision: 7, logo: 'old' });
  await screen.findByAltText('Current logo');
  server.now = { ...server.now, revision: 8, productName: 'Shop' };
  await userEvent.upload(screen.getByLabelText('Logo'), png);
  await waitFor(() => expect(current()).toContain('logo9'));
  expect(server.now.productName).toBe('Shop');
  expect(server.sent.map((s) => s.ifMatch)).toEqual(['"7"', '"8"']);
});
