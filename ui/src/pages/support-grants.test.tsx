// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { act, cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { applier } from '../api/live';
import { newQueryClient, type Session } from '../api/session';
import { grantValid, type SupportGrant } from '../api/support';
import { SupportGrants } from './support-grants';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const hour = 3_600_000;
const grant = (name: string, organization: string, hours: number): SupportGrant => ({
  kind: 'SupportGrant',
  meta: { id: `sgr-${name}`, name, organization },
  spec: { expiresAt: new Date(Date.now() + hours * hour).toISOString(), reason: `${name} is broken` },
});

/** apply applies a change that the watch reports. */
let apply: ReturnType<typeof applier>;

function show(session: Partial<Session>) {
  const asked = answering({
    'support-grants': { items: [grant('gpu', 'org-1', 2), grant('disk', 'org-1', -2)] },
    organizations: { items: [{ kind: 'Organization', meta: { id: 'org-1', name: 'acme' }, spec: {} }] },
  });
  const client = newQueryClient();
  apply = applier(client, new AbortController().signal, (f) => f());
  render(
    <QueryClientProvider client={client}>
      <SupportGrants session={session as Session} />
    </QueryClientProvider>,
  );
  return asked;
}

const admin = { role: 'admin', organization: 'org-1' } as const;

const row = async (name: string) => (await screen.findByText(name)).closest('tr')!;

test('a grant is valid until its end, and while it is not deleted', () => {
  const g = grant('gpu', 'org-1', 1);
  expect(grantValid(g)).toBe(true);
  expect(grantValid(g, new Date(g.spec.expiresAt))).toBe(false);
  expect(grantValid({ ...g, meta: { ...g.meta, deletedAt: g.spec.expiresAt } })).toBe(false);
});

test('an administrator sees which grants are valid, and why they were given', async () => {
  show(admin);
  expect(await row('gpu')).toHaveTextContent(/Valid.*gpu is broken/);
  expect(await row('disk')).toHaveTextContent('Expired');
  expect(screen.queryByText('acme')).toBeNull();
});

test('a grant that another administrator revokes disappears', async () => {
  show(admin);
  await row('gpu');
  act(() =>
    apply({
      revision: 9,
      type: 'remove',
      object: { ...grant('gpu', 'org-1', 2), meta: { id: 'sgr-gpu', name: 'gpu' } },
    }),
  );
  await waitFor(() => expect(screen.queryByText('gpu')).toBeNull());
  expect(screen.getByText('disk')).toBeVisible();
});

test('an administrator allows support access for some hours', async () => {
  const asked = show(admin);
  await userEvent.click(screen.getByRole('button', { name: 'Allow support access' }));
  const dialog = await screen.findByRole('dialog');
  const send = within(dialog).getByRole('button', { name: 'Allow support access' });
  await userEvent.click(send);
  expect(asked).toEqual([]); // the name is required
  await userEvent.type(within(dialog).getByLabelText(/^Name/), 'ticket-4711');
  await userEvent.selectOptions(within(dialog).getByLabelText(/^Duration/), '24 hours');
  await userEvent.type(within(dialog).getByLabelText(/^Reason/), 'no GPU');
  const before = Date.now();
  await userEvent.click(send);
  await waitFor(() => expect(asked).toHaveLength(1));
  const { path, method, body } = asked[0]!;
  const sent = body as SupportGrant;
  expect([method, path]).toEqual(['POST', 'support-grants']);
  expect(sent).toMatchObject({ meta: { name: 'ticket-4711', organization: 'org-1' }, spec: { reason: 'no GPU' } });
  const ends = Date.parse(sent.spec.expiresAt);
  expect(ends).toBeGreaterThanOrEqual(before + 24 * hour);
  expect(ends).toBeLessThanOrEqual(Date.now() + 24 * hour);
  await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
});

test('an administrator revokes a grant after a confirmation', async () => {
  const asked = show(admin);
  await userEvent.click(within(await row('gpu')).getByRole('button', { name: 'Actions: gpu' }));
  await userEvent.click(screen.getByRole('menuitem', { name: 'Revoke' }));
  expect(asked).toEqual([]);
  await userEvent.click(within(screen.getByRole('dialog')).getByRole('button', { name: 'Revoke' }));
  await waitFor(() => expect(asked).toMatchObject([{ method: 'DELETE', path: 'support-grants/sgr-gpu' }]));
});

test('an administrator revokes many grants, once it is sure', async () => {
  const asked = show(admin);
  await row('gpu');
  await userEvent.click(screen.getByRole('checkbox', { name: 'Select all rows on this page' }));
  await userEvent.click(within(screen.getByRole('toolbar')).getByRole('button', { name: 'Revoke' }));
  const dialog = within(screen.getByRole('dialog'));
  expect(dialog.getByRole('button', { name: 'Revoke' })).toBeDisabled();
  await userEvent.type(dialog.getByLabelText('Enter 2 to confirm'), '2');
  await userEvent.click(dialog.getByRole('button', { name: 'Revoke' }));
  await waitFor(() =>
    expect(asked.map((a) => `${a.method} ${a.path}`).sort()).toEqual([
      'DELETE support-grants/sgr-disk',
      'DELETE support-grants/sgr-gpu',
    ]),
  );
});

test('one selected grant is revoked as its own action does, without its name typed', async () => {
  const asked = show(admin);
  await userEvent.click(within(await row('gpu')).getByRole('checkbox'));
  await userEvent.click(within(screen.getByRole('toolbar')).getByRole('button', { name: 'Revoke' }));
  const dialog = within(screen.getByRole('dialog'));
  expect(dialog.queryByRole('textbox')).toBeNull();
  await userEvent.click(dialog.getByRole('button', { name: 'Revoke' }));
  await waitFor(() => expect(asked).toMatchObject([{ method: 'DELETE', path: 'support-grants/sgr-gpu' }]));
});

test('an operator sees whose grants they are, and can neither create nor revoke them', async () => {
  show({ role: 'operator' });
  const of = await row('gpu');
  await waitFor(() => expect(of).toHaveTextContent('acme'));
  expect(screen.queryByRole('button', { name: 'Allow support access' })).toBeNull();
  expect(within(of).queryByRole('button', { name: /^Actions/ })).toBeNull();
  expect(screen.queryByRole('checkbox')).toBeNull();
});
