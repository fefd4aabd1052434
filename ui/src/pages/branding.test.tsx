// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { certificateOf, requestedOf, type PortalDomain } from '../api/portal-domains';
import { newQueryClient, type Session } from '../api/session';
import { BrandingPage } from './branding';

afterEach(cleanup);

const shop = 'org-000000000001';

const domain = (spec: PortalDomain['spec'] = {}): PortalDomain => ({
  kind: 'PortalDomain',
  meta: { id: 'pdom-000000000001', name: 'portal.shop.example', organization: shop, revision: 5 },
  spec,
});

function show(role: 'operator' | 'reseller', d: PortalDomain = domain()) {
  const asked = answering({
    branding: { revision: 1, productName: 'Cluster' },
    [`organizations/${shop}/branding`]: { revision: 7, productName: 'Shop', logo: 'abc' },
    organizations: { items: [{ kind: 'Organization', meta: { id: shop, name: 'shop' }, spec: {} }] },
    'portal-domains': { items: [d] },
    [`portal-domains/${d.meta.id}`]: d,
  });
  const session = { role, ...(role === 'reseller' && { organization: shop }) } as Session;
  render(
    <QueryClientProvider client={newQueryClient()}>
      <BrandingPage session={session} />
    </QueryClientProvider>,
  );
  return asked;
}

test('a reseller edits its own branding', async () => {
  const asked = show('reseller');
  const name = await screen.findByLabelText('Product name');
  expect(name).toHaveValue('Shop');
  expect(screen.getByAltText('Current logo')).toHaveAttribute(
    'src',
    `/portal/v1/organizations/${shop}/branding/logo?abc`,
  );
  await userEvent.clear(name);
  await userEvent.type(name, 'Shop Cloud');
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({
    method: 'PATCH',
    path: `organizations/${shop}/branding`,
    body: { productName: 'Shop Cloud' },
  });
});

test('an operator edits the branding of the cluster', async () => {
  const asked = show('operator');
  expect(await screen.findByLabelText('Product name')).toHaveValue('Cluster');
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({ method: 'PATCH', path: 'branding' });
});

async function chosen() {
  await userEvent.click(await screen.findByRole('checkbox', { name: /portal\.shop\.example/ }));
  return screen.getByRole('toolbar');
}

test('an operator approves a host name', async () => {
  const asked = show('operator');
  const bar = await chosen();
  expect(within(bar).getByRole('button', { name: 'Withdraw approval' })).toBeDisabled();
  await userEvent.click(within(bar).getByRole('button', { name: 'Approve' }));
  await userEvent.click(within(screen.getByRole('dialog')).getByRole('button', { name: 'Approve' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toEqual({
    method: 'PATCH',
    path: 'portal-domains/pdom-000000000001',
    body: { spec: { approved: true } },
  });
});

test('a reseller cannot approve, and requests names', async () => {
  const asked = show('reseller');
  expect(within(await chosen()).queryByRole('button', { name: 'Approve' })).toBeNull();
  expect(screen.getByText('Requested')).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'Request host name' }));
  const dialog = screen.getByRole('dialog');
  await userEvent.type(within(dialog).getByLabelText('Host name *'), ' WWW.shop.example ');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Request host name' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toEqual({
    method: 'POST',
    path: 'portal-domains',
    body: { kind: 'PortalDomain', meta: { name: 'www.shop.example' }, spec: {} },
  });
});

test('a certificate is sent with its key, and the approval stays', async () => {
  const asked = show('reseller', domain({ approved: true }));
  await userEvent.click(await screen.findByRole('button', { name: 'Set certificate of portal.shop.example' }));
  const dialog = screen.getByRole('dialog');
  await userEvent.type(within(dialog).getByLabelText('Certificate *'), 'CERT');
  await userEvent.type(within(dialog).getByLabelText('Private key *'), 'KEY');
  await userEvent.click(within(dialog).getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toEqual({
    method: 'PATCH',
    path: 'portal-domains/pdom-000000000001',
    body: { spec: { certificate: 'CERT', key: 'KEY' } },
  });
});

test('the state of a certificate', () => {
  const now = new Date('2026-03-01T00:00:00Z');
  expect(certificateOf(domain(), now)).toBe('none');
  expect(certificateOf(domain({ expiresAt: '2026-03-01T00:00:00Z' }), now)).toBe('expired');
  expect(certificateOf(domain({ expiresAt: '2026-03-01T00:00:01Z' }), now)).toBe('valid');
});

test('a requested certificate counts while none that was stored is valid', () => {
  const now = new Date('2026-03-01T00:00:00Z');
  const of = (expiresAt: string | undefined, stored?: string): PortalDomain => ({
    kind: 'PortalDomain',
    meta: { name: 'portal.shop.example' },
    spec: { approved: true, expiresAt: stored },
    status: { expiresAt, conditions: [{ type: 'CertificateReady', status: false, message: 'refused' }] },
  });
  expect(requestedOf(of('2026-04-01T00:00:00Z'), now)).toEqual({
    expiresAt: '2026-04-01T00:00:00Z',
    problem: 'refused',
  });
  expect(requestedOf(of('2026-02-01T00:00:00Z'), now).expiresAt).toBeUndefined();
  expect(requestedOf(of(undefined, '2026-05-01T00:00:00Z'), now).problem).toBeUndefined();
});
