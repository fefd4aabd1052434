// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Organization } from '../../api/customers';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { Organizations } from './list';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const organization = (name: string, spec: Organization['spec'] = {}): Organization => ({
  kind: 'Organization',
  meta: { id: `org-${name}`, name, revision: 3 },
  spec,
});

/** show shows a reseller's own organization and three customers, of which one is suspended. */
function show(session: Partial<Session>) {
  const all = [
    organization('mid'),
    organization('acme', { displayName: 'Acme' }),
    organization('beta', { suspended: { reason: 'spam' } }),
    organization('coda'),
  ];
  const asked = answering({
    organizations: { items: all },
    ...Object.fromEntries(all.map((o) => [`organizations/${o.meta.id}`, o])),
    wallet: { balanceMicros: 0, unbilledMicros: 0, currency: 'EUR' },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Organizations session={session as Session} />
    </QueryClientProvider>,
  );
  return asked;
}

const reseller = { role: 'reseller', organization: 'org-mid' } as const;

async function choose(action: string) {
  await userEvent.click(await screen.findByRole('checkbox', { name: 'Select all rows on this page' }));
  await userEvent.click(within(screen.getByRole('toolbar')).getByRole('button', { name: action }));
  return within(screen.getByRole('dialog'));
}

const sent = (asked: ReturnType<typeof show>) => asked.map((a) => `${a.method} ${a.path}`).sort();

test('a reseller suspends customers for one reason, but not its own organization', async () => {
  const asked = show(reseller);
  const dialog = await choose('Suspend');
  dialog.getByText('Suspend: 2 objects');
  await userEvent.type(dialog.getByLabelText(/^Reason/), ' unpaid ');
  expect(dialog.getByRole('button', { name: 'Suspend' })).toBeDisabled();
  await userEvent.type(dialog.getByLabelText('Enter 2 to confirm'), '2');
  await userEvent.click(dialog.getByRole('button', { name: 'Suspend' }));
  await waitFor(() => expect(sent(asked)).toEqual(['PATCH organizations/org-acme', 'PATCH organizations/org-coda']));
  for (const { body } of asked) expect(body).toEqual({ spec: { suspended: { reason: 'unpaid' } } });
});

test('those that are suspended are resumed', async () => {
  const asked = show(reseller);
  const dialog = await choose('Resume');
  await userEvent.click(dialog.getByRole('button', { name: 'Resume' }));
  await waitFor(() => expect(sent(asked)).toEqual(['PATCH organizations/org-beta']));
  expect(asked[0]?.body).toEqual({ spec: { suspended: null } });
});

test('an operator may delete every organization', async () => {
  const asked = show({ role: 'operator' });
  const dialog = await choose('Delete');
  await userEvent.type(dialog.getByLabelText('Enter 4 to confirm'), '4{Enter}');
  await waitFor(() => expect(asked).toHaveLength(4));
  expect(new Set(asked.map((a) => a.method))).toEqual(new Set(['DELETE']));
});
