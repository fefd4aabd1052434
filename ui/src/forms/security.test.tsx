// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import { en } from '../i18n/en';
import { SecurityForm } from './security';

afterEach(cleanup);

const review = {
  items: [{ kind: 'User', id: 'usr-1', name: 'ann@example.com', grants: [{ role: 'admin' }], createdAt: '' }],
  total: 4,
};

function show(requireSecondFactor: ('admin' | 'viewer')[], found: object = review) {
  const settings = { revision: 7, requireSecondFactor, encryptTunnels: false };
  const asked = answering({ 'access-review': found, 'security-settings': settings });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <SecurityForm settings={settings} />
    </QueryClientProvider>,
  );
  return asked;
}

test('a role that is chosen shows who would be asked, before it is saved', async () => {
  const asked = show([]);
  expect(screen.queryByText(/must set one up/)).toBeNull();
  await userEvent.click(screen.getByLabelText('Administrator'));
  const link = await screen.findByRole('link', { name: 'Administrator: 4 users without a second factor' });
  expect(link).toHaveAttribute('href', '/access-review?kind=User&role=admin&finding=no-second-factor');
  expect(link.closest('li')).toHaveTextContent('(ann@example.com, …)');
  expect(asked).toEqual([]);
});

test('roles are sent in the order of the API', async () => {
  const asked = show(['viewer']);
  await userEvent.click(screen.getByLabelText('Operator'));
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toEqual({
    method: 'PATCH',
    path: 'security-settings',
    body: { requireSecondFactor: ['operator', 'viewer'], requireSupportConsent: false },
  });
});

test('nobody would be asked: no warning', async () => {
  show(['admin'], { items: [], total: 0 });
  expect(screen.getByLabelText('Administrator')).toBeChecked();
  await new Promise((done) => setTimeout(done, 50));
  expect(screen.queryByText(/must set one up/)).toBeNull();
});

test('consent for support is required, and the roles stay', async () => {
  const asked = show(['viewer']);
  const consent = screen.getByLabelText('Require consent for support');
  expect(consent).not.toBeChecked();
  await userEvent.click(consent);
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toEqual({ requireSupportConsent: true });
});

test('the encryption of tunnels is turned on, and the rest stays', async () => {
  const asked = show(['viewer']);
  await userEvent.click(screen.getByLabelText(en['sec.encrypt']));
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toMatchObject({ encryptTunnels: true });
});
