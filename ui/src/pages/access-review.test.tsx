// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { newQueryClient, type Session } from '../api/session';
import { AccessReview } from './access-review';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const entry = (name: string, more: object = {}) => ({
  kind: 'User',
  id: `usr-${name}`,
  name,
  organization: 'org-1',
  organizationName: 'acme',
  grants: [{ role: 'member', organization: 'org-1', organizationName: 'acme', project: 'p', projectName: 'render' }],
  createdAt: '2026-01-01T00:00:00Z',
  ...more,
});

/** show renders the page, and returns the queries of its requests for the review. */
function show(role: Session['role'], items: object[]) {
  const asked: string[] = [];
  vi.stubGlobal('fetch', (r: Request) => {
    const url = new URL(r.url);
    if (!url.pathname.endsWith('/access-review')) return Promise.resolve(Response.json({ items: [] }));
    asked.push(url.search);
    return Promise.resolve(Response.json({ items, total: items.length, asOf: '', unusedSince: '' }));
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <AccessReview session={{ role, name: 'ann' } as unknown as Session} />
    </QueryClientProvider>,
  );
  return asked;
}

test('an administrator sees what to check, without organizations', async () => {
  show('admin', [entry('bob@example.com', { findings: ['no-second-factor', 'unused'] }), entry('eve@example.com')]);
  expect(await screen.findByRole('link', { name: 'bob@example.com' })).toBeVisible();
  expect(screen.getByText('No second factor', { selector: 'td *' })).toBeVisible();
  expect(screen.getAllByText('Member (render)')).toHaveLength(2);
  expect(screen.queryByLabelText('Organization')).toBeNull();
});

test('an operator sees organizations, and narrows by what to check', async () => {
  const asked = show('operator', [entry('bob@example.com')]);
  expect(await screen.findByText('Member (acme / render)')).toBeVisible();
  await userEvent.selectOptions(screen.getByLabelText('To check'), 'no-second-factor');
  await waitFor(() => expect(asked.at(-1)).toContain('finding=no-second-factor'));
  // The review has an order of its own and no labels: the server would refuse other parameters.
  for (const q of asked) expect(q).not.toMatch(/sort|Selector|count/);
  expect(screen.queryByLabelText(/labels/i)).toBeNull();
});
