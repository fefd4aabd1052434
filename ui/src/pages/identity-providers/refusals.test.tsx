// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, within } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../../api/fake';
import type { IdentityProvider } from '../../api/identity-providers';
import { newQueryClient } from '../../api/session';
import { Refusals } from './refusals';

afterEach(cleanup);

const provider = { kind: 'IdentityProvider', meta: { id: 'idp-1', name: 'corp' }, spec: {} } as IdentityProvider;

function show(list: object) {
  answering({ 'identity-providers/idp-1/refusals': list });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Refusals provider={provider} />
    </QueryClientProvider>,
  );
}

test('reasons are shown as text, with who was refused and how often', async () => {
  const at = new Date().toISOString();
  show({
    incomplete: false,
    items: [
      { at, count: 3, confirmed: true, email: 'ann@example.org', reason: 'address is not in a domain of the provider' },
      { at, count: 1, confirmed: false, reason: '<img src=x onerror=alert(1)> is not signed' },
    ],
  });
  const known = within(await screen.findByRole('row', { name: /ann@example\.org/ }));
  expect(known.getByText('address is not in a domain of the provider')).toBeVisible();
  expect(known.getByText('3')).toBeVisible();
  const other = within(screen.getByRole('row', { name: /Not confirmed/ }));
  expect(other.getByText('<img src=x onerror=alert(1)> is not signed')).toBeVisible();
  expect(document.querySelector('img')).toBeNull();
  expect(screen.queryByText(/A node did not respond/)).toBeNull();
});

test('a list without a node’s refusals says so', async () => {
  show({ incomplete: true, items: [] });
  expect(await screen.findByText(/A node did not respond/)).toBeVisible();
  expect(screen.getByText('No refused sign-ins')).toBeVisible();
});
