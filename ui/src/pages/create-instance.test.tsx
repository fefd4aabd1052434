// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { answering } from '../api/fake';
import { newQueryClient, type Session } from '../api/session';
import { CreateInstance } from './create-instance';

afterEach(cleanup);

function show(session: Partial<Session>) {
  answering({});
  const { hook, history } = memoryLocation({ path: '/instances/new', record: true });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Router hook={hook}>
        <CreateInstance session={session as Session} id="" />
      </Router>
    </QueryClientProvider>,
  );
  return history;
}

test('without a project an administrator goes to create one', async () => {
  const visited = show({ role: 'admin', organization: 'org-1' });
  await userEvent.click(await screen.findByRole('button', { name: 'Create project' }));
  expect(visited.at(-1)).toBe('/projects');
});

test('an operator creates it in an organization', async () => {
  const visited = show({ role: 'operator' });
  await userEvent.click(await screen.findByRole('button', { name: 'Create project' }));
  expect(visited.at(-1)).toBe('/organizations');
});

test('a member is told whom to ask', async () => {
  show({ role: 'member', organization: 'org-1' });
  expect(await screen.findByText(/Ask an administrator of your organization/)).toBeVisible();
  expect(screen.queryByRole('button')).toBeNull();
});
