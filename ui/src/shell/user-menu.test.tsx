// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient, type Session } from '../api/session';
import { hasChosen, LanguageProvider } from '../i18n';
import { UserMenu } from './user-menu';

afterEach(cleanup);
beforeEach(() => localStorage.clear());

function show(session: Partial<Session>) {
  const asked = answering({ language: { language: 'de' } });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <LanguageProvider>
        <UserMenu session={session as Session} />
      </LanguageProvider>
    </QueryClientProvider>,
  );
  return asked;
}

test('a user who chooses a language gets mail in it', async () => {
  const asked = show({ role: 'member', name: 'ann', user: 'usr-1' });
  await userEvent.click(screen.getByRole('button', { name: /ann/ }));
  await userEvent.click(await screen.findByText('Deutsch'));
  expect(hasChosen()).toBe(true);
  await waitFor(() => expect(document.documentElement).toHaveAttribute('lang', 'de'));
  expect(asked).toEqual([{ method: 'PUT', path: 'language', body: { language: 'de' } }]);
});

test('an API key has no language', async () => {
  const asked = show({ role: 'member', name: 'key', key: 'key-1' });
  await userEvent.click(screen.getByRole('button', { name: /key/ }));
  await userEvent.click(await screen.findByText('Deutsch'));
  await waitFor(() => expect(document.documentElement).toHaveAttribute('lang', 'de'));
  expect(asked).toEqual([]);
});
