// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import { CertificatesPage } from './certificates';

afterEach(cleanup);

const day = 86_400_000;
const at = (days: number) => new Date(Date.now() + days * day).toISOString();
const failed = (message: string) => [
  { type: 'CertificateReady', status: false, reason: 'Failed', message, since: at(-1) },
];

function show(settings: object, portalURL = 'https://cloud.example') {
  const asked = answering({
    'acme-settings': settings,
    mail: { portalURL },
    organizations: { items: [{ kind: 'Organization', meta: { id: 'org-1', name: 'reseller' }, spec: {} }] },
    'portal-domains': {
      items: [
        {
          kind: 'PortalDomain',
          meta: { id: 'dom-1', name: 'shop.example', organization: 'org-1' },
          spec: { approved: true },
          status: { nextAt: at(1), conditions: failed('the authority cannot reach shop.example') },
        },
        { kind: 'PortalDomain', meta: { id: 'dom-2', name: 'new.example', organization: 'org-1' }, spec: {} },
      ],
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <CertificatesPage />
    </QueryClientProvider>,
  );
  return asked;
}

test('the state of each name’s certificate is shown, with why the last request failed', async () => {
  show({
    revision: 2,
    enabled: true,
    acceptTerms: true,
    directoryURL: 'https://ca.example/directory',
    status: { hostName: 'cloud.example', certificate: 'x', expiresAt: at(60), nextAt: at(30) },
  });
  expect(await screen.findByText('cloud.example')).toBeVisible();
  expect(screen.getByText('Issued')).toBeVisible();
  const row = within(await screen.findByRole('row', { name: /shop\.example/ }));
  expect(row.getByText('Failed')).toBeVisible();
  expect(row.getByText('reseller')).toBeVisible();
  expect(row.getByText('the authority cannot reach shop.example')).toBeVisible();
  expect(within(screen.getByRole('row', { name: /new\.example/ })).getByText('Not approved')).toBeVisible();
});

test('another directory has other terms, which must be accepted again', async () => {
  const asked = show({ revision: 2, acceptTerms: true, directoryURL: 'https://ca.example/directory' });
  const user = userEvent.setup();
  const directory = await screen.findByLabelText(/Directory/);
  expect(screen.getByLabelText(/I accept the terms/)).toBeChecked();
  await user.clear(directory);
  await user.type(directory, 'https://other.example/directory');
  expect(screen.getByLabelText(/I accept the terms/)).not.toBeChecked();
  await user.click(screen.getByLabelText(/I accept the terms/));
  await user.click(screen.getByLabelText(/Request and renew/));
  await user.type(screen.getByLabelText(/Contact/), 'ops@example.com');
  await user.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({
    method: 'PATCH',
    path: 'acme-settings',
    body: { enabled: true, directoryURL: 'https://other.example/directory', email: 'ops@example.com' },
  });
});

test('a portal without an address has no certificate, and the page leads to where it is set', async () => {
  show({ revision: 0 }, '');
  expect(await screen.findByRole('link', { name: 'Mail' })).toHaveAttribute('href', '/mail');
  expect(screen.getByText('None')).toBeVisible();
});
