// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../../api/client';
import { newQueryClient } from '../../api/session';
import { VATNumber } from './overview';

afterEach(() => cleanup());

const check = (status: Schemas['VATCheckStatus'] | undefined, number = 'FR40303265045') => ({
  kind: 'VATCheck',
  meta: { id: 'vat-1', name: 'vat-1', organization: 'org-1' },
  spec: { number },
  status,
});

function show(items: object[]) {
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({ items, revision: 1 })));
  const client = newQueryClient();
  render(
    <QueryClientProvider client={client}>
      <p>
        <VATNumber organization="org-1" number="FR40303265045" />
      </p>
    </QueryClientProvider>,
  );
  return client;
}

test('a confirmed VAT number has its evidence', async () => {
  show([check({ state: 'Valid', checkedAt: '2026-03-01T10:00:00Z', consultation: 'WAPI1', name: 'ACME SA' })]);
  expect(await screen.findByText('Confirmed by VIES')).toBeVisible();
  expect(screen.getByText(/ACME SA; asked .*2026.*; Consultation number WAPI1/)).toBeVisible();
});

test.each([
  [undefined, 'Not verified yet'],
  [{ attempts: 3, lastError: 'MS_UNAVAILABLE' } as const, 'Not verified yet'],
  [{ state: 'Invalid' } as const, 'Not known to VIES'],
])('what VIES has answered is told: %j', async (status, text) => {
  show([check(status)]);
  expect(await screen.findByText(text)).toBeVisible();
  if (status && 'lastError' in status) expect(screen.getByText(/no result: MS_UNAVAILABLE/)).toBeVisible();
});

test('what is known of a former number is not told', async () => {
  const client = show([check({ state: 'Valid' }, 'FR53000004605')]);
  await vi.waitFor(() => expect(client.getQueriesData({ queryKey: ['VATCheck'] })[0]?.[1]).toBeDefined());
  expect(screen.getByText('FR40303265045')).toBeVisible();
  expect(screen.queryByText('Confirmed by VIES')).toBeNull();
});
