// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { answering } from '../api/fake';
import { newQueryClient, sessionKey, type Session } from '../api/session';
import { ProjectProvider } from '../parts/project';
import { Members } from './members';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const user = (name: string, disabled = false): Schemas['User'] => ({
  kind: 'User',
  meta: { id: `usr-${name}`, name: `${name}@example.com`, organization: 'org-1' },
  spec: { disabled },
});

const ann = { role: 'admin', organization: 'org-1', user: 'usr-ann' } as Session;

function show() {
  const asked = answering({ users: { items: [user('ann'), user('bob'), user('eve', true)] } });
  const client = newQueryClient();
  client.setQueryData(sessionKey, ann);
  render(
    <QueryClientProvider client={client}>
      <ProjectProvider session={ann}>
        <Members />
      </ProjectProvider>
    </QueryClientProvider>,
  );
  return asked;
}

const row = async (name: string) => (await screen.findByText(new RegExp(`^${name}@`))).closest('tr')!;

async function choose(action: string) {
  await userEvent.click(await screen.findByRole('checkbox', { name: 'Select all rows on this page' }));
  await userEvent.click(within(screen.getByRole('toolbar')).getByRole('button', { name: action }));
  return within(screen.getByRole('dialog'));
}

const sent = (asked: ReturnType<typeof show>) => asked.map((a) => `${a.method} ${a.path}`).sort();

test('an administrator deletes a member, but not itself', async () => {
  const asked = show();
  expect(within(await row('ann')).queryByRole('button', { name: /^Delete/ })).toBeNull();
  await userEvent.click(within(await row('bob')).getByRole('button', { name: 'Delete: bob@example.com' }));
  const dialog = within(screen.getByRole('dialog'));
  expect(dialog.getByRole('button', { name: 'Delete' })).toBeDisabled();
  await userEvent.type(dialog.getByRole('textbox'), 'bob@example.com');
  await userEvent.click(dialog.getByRole('button', { name: 'Delete' }));
  await waitFor(() => expect(sent(asked)).toEqual(['DELETE users/usr-bob']));
});

test('of all that are selected, the administrator itself is not deleted', async () => {
  const asked = show();
  const dialog = await choose('Delete');
  await userEvent.type(dialog.getByLabelText('Enter 2 to confirm'), '2{Enter}');
  await waitFor(() => expect(sent(asked)).toEqual(['DELETE users/usr-bob', 'DELETE users/usr-eve']));
});

test('a link is sent to those who can sign in', async () => {
  const asked = show();
  const dialog = await choose('Send link by e-mail');
  await userEvent.click(dialog.getByRole('button', { name: 'Send link by e-mail' }));
  await waitFor(() => expect(sent(asked)).toEqual(['POST users/usr-ann/invite', 'POST users/usr-bob/invite']));
});
