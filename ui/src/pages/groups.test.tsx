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
    'login/oidc': { names: ['okta'] },
    // Somebody else has added a member since the list was read.
    'groups/grp-team': group('team', { members: ['usr-1', 'usr-3'], source: 'local' }),
    'groups/grp-scim-gpu': group('scim-gpu', { displayName: 'GPU users', members: ['usr-1'], source: 'scim' }),
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
  await waitFor(async () => expect(await row('team')).toHaveTextContent(/\(web\).*1.*Administrators/));
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
  await userEvent.type(within(dialog).getByLabelText(/^Members$/), 'ann@example.com{enter}bob@example.com');
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
  await userEvent.selectOptions(within(dialog).getByLabelText(/^Role/), 'billing');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Add role' }));
  await userEvent.click(within(dialog).getByRole('button', { name: /Save/ }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect([asked[0]!.method, asked[0]!.path]).toEqual(['PATCH', 'groups/grp-scim-gpu']);
  expect(asked[0]!.body).toEqual({ spec: { grants: [{ role: 'billing', organization: 'org-1' }] } });
});

const members = async (name: string) => {
  await userEvent.click(within(await row(name)).getByRole('button'));
  await userEvent.click(await screen.findByRole('menuitem', { name: 'Members' }));
  return screen.findByRole('dialog');
};

test('members are added to those that the group has then, and removed one by one', async () => {
  const asked = show();
  const dialog = await members('team');
  await userEvent.type(within(dialog).getByLabelText(/^Add members/), 'bob@example.com');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Add' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect([asked[0]!.method, asked[0]!.path]).toEqual(['PATCH', 'groups/grp-team']);
  expect(asked[0]!.body).toEqual({ spec: { members: ['usr-1', 'usr-3', 'bob@example.com'] } });
  await userEvent.click(await within(dialog).findByRole('button', { name: 'Remove member: ann@example.com' }));
  await waitFor(() => expect(asked).toHaveLength(2));
  expect(asked[1]!.body).toEqual({ spec: { members: ['usr-3'] } });
});

test('the members of a directory’s group are shown, and cannot be changed', async () => {
  show();
  const dialog = await members('scim-gpu');
  expect(dialog).toHaveTextContent('cannot be changed here');
  expect(dialog).toHaveTextContent('ann@example.com');
  expect(within(dialog).queryByRole('button', { name: /^Remove/ })).toBeNull();
  expect(within(dialog).getByRole('button', { name: 'Add' })).toBeDisabled();
});

test('a group of an identity provider has no list of members', async () => {
  const asked = show();
  await row('team');
  await userEvent.click(screen.getByRole('button', { name: 'Create group' }));
  const dialog = await screen.findByRole('dialog');
  await userEvent.type(within(dialog).getByLabelText(/^Name/), 'gpu');
  await userEvent.selectOptions(await within(dialog).findByLabelText(/^Members decided by/), 'okta');
  expect(within(dialog).queryByLabelText(/^Members$/)).toBeNull();
  await userEvent.type(within(dialog).getByLabelText(/^Value of the groups claim/), 'gpu-users');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Create group' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]!.body).toMatchObject({
    spec: { source: 'identity-provider', identityProvider: 'okta', externalId: 'gpu-users' },
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
