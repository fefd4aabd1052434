// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import type { Group } from '../api/groups';
import { newQueryClient, type Session } from '../api/session';
import { ProjectProvider } from '../parts/project';
import { Groups } from './groups';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const group = (name: string, spec: Group['spec']): Group => ({
  kind: 'Group',
  meta: { id: `grp-${name}`, name, organization: 'org-1', revision: 7 },
  spec,
});

const session = { role: 'admin', organization: 'org-1' } as Session;

function show() {
  const asked = answering({
    groups: {
      items: [
        group('team', {
          grants: [{ role: 'member', organization: 'org-1', project: 'prj-1' }],
          members: ['usr-1'],
          source: 'local',
        }),
        group('scim-gpu', { displayName: 'GPU users', members: ['usr-1', 'usr-2'], source: 'scim', externalId: 'x' }),
      ],
    },
    'api-keys': {
      kind: 'APIKey',
      meta: { id: 'key-1', name: 'directory' },
      spec: { role: 'admin' },
      secret: 'bslt_key-1_secret',
    },
    users: { items: [{ kind: 'User', meta: { id: 'usr-1', name: 'ann@example.com' }, spec: {} }] },
    projects: { items: [{ kind: 'Project', meta: { id: 'prj-1', name: 'web', organization: 'org-1' }, spec: {} }] },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <ProjectProvider session={session}>
        <Groups />
      </ProjectProvider>
    </QueryClientProvider>,
  );
  return asked;
}

const row = async (name: string) => (await screen.findByText(name)).closest('tr')!;

test('the list shows roles, how many members a group has, and where they come from', async () => {
  show();
  await waitFor(async () => expect(await row('team')).toHaveTextContent(/\(web\).*1.*This list/));
  expect(await row('scim-gpu')).toHaveTextContent(/GPU users.*None.*2.*Directory/i);
});

test('an administrator creates a group with a role and members', async () => {
  const asked = show();
  await row('team');
  await userEvent.click(screen.getByRole('button', { name: 'Create group' }));
  const dialog = await screen.findByRole('dialog');
  await userEvent.type(within(dialog).getByLabelText(/^Name/), 'ops');
  await userEvent.selectOptions(within(dialog).getByLabelText(/^Role/), 'admin');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Add role' }));
  await userEvent.type(within(dialog).getByLabelText(/^Members/), 'ann@example.com{enter}bob@example.com');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Create group' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect([asked[0]!.method, asked[0]!.path]).toEqual(['POST', 'groups']);
  expect(asked[0]!.body).toMatchObject({
    meta: { name: 'ops', organization: 'org-1' },
    spec: { grants: [{ role: 'admin', organization: 'org-1' }], members: ['ann@example.com', 'bob@example.com'] },
  });
});

test('a group of a directory keeps its members and names when its roles change', async () => {
  const asked = show();
  const actions = within(await row('scim-gpu')).getByRole('button');
  await userEvent.click(actions);
  await userEvent.click(await screen.findByRole('menuitem', { name: 'Edit group' }));
  const dialog = await screen.findByRole('dialog');
  expect(within(dialog).queryByLabelText(/^Members/)).toBeNull();
  expect(dialog).toHaveTextContent('cannot be changed here');
  await userEvent.selectOptions(within(dialog).getByLabelText(/^Role/), 'billing');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Add role' }));
  await userEvent.click(within(dialog).getByRole('button', { name: /Save/ }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]!.body).toMatchObject({
    meta: { name: 'scim-gpu', revision: 7 },
    spec: {
      displayName: 'GPU users',
      externalId: 'x',
      source: 'scim',
      members: ['usr-1', 'usr-2'],
      grants: [{ role: 'billing', organization: 'org-1' }],
    },
  });
});

test('connecting a directory creates a key that can do nothing but SCIM', async () => {
  const asked = show();
  await row('team');
  await userEvent.click(screen.getByRole('button', { name: 'Connect a directory' }));
  const dialog = await screen.findByRole('dialog');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Create' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(await screen.findByDisplayValue('bslt_key-1_secret')).toBeVisible();
  expect(screen.getByDisplayValue(/\/scim\/v2$/)).toBeVisible();
  expect([asked[0]!.method, asked[0]!.path]).toEqual(['POST', 'api-keys']);
  expect(asked[0]!.body).toMatchObject({
    meta: { name: 'directory', organization: 'org-1' },
    spec: { role: 'admin', scopes: ['scim:write'] },
  });
});
