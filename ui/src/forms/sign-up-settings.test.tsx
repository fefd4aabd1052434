// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import type { SignUpSettings } from '../api/sign-up';
import { SignUpSettingsForm } from './sign-up-settings';

afterEach(cleanup);

const books = {
  items: [
    { kind: 'PriceBook', meta: { id: 'book-1', name: 'default' }, spec: { currency: 'EUR', prices: [] } },
    { kind: 'PriceBook', meta: { id: 'book-2', name: 'us' }, spec: { currency: 'USD', prices: [] } },
  ],
};

function show(settings: SignUpSettings, mail = { enabled: true }, reseller?: string) {
  const asked = answering({ 'price-books': books, mail, 'sign-up-settings': settings });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <SignUpSettingsForm settings={settings} reseller={reseller} />
    </QueryClientProvider>,
  );
  return asked;
}

const save = () => userEvent.click(screen.getByRole('button', { name: 'Save' }));

test('terms, domains, credit and quota are sent in the units of the API', async () => {
  const asked = show({ revision: 3 });
  const user = userEvent.setup();
  await user.click(screen.getByLabelText('People can sign up'));
  await user.type(screen.getByLabelText('URL of the terms'), 'https://example.com/terms');
  await user.type(screen.getByLabelText(/Version of the terms/), '2026-03');
  await user.type(screen.getByLabelText('Allowed mail domains'), 'example.com, example.org');
  await screen.findByRole('option', { name: 'us (USD)' });
  await user.selectOptions(screen.getByLabelText('Price book'), 'book-2');
  await user.type(screen.getByLabelText('Initial credit (USD)'), '12.5');
  await user.type(screen.getByLabelText('Memory (GiB)'), '8');
  await save();
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toEqual({
    method: 'PATCH',
    path: 'sign-up-settings',
    body: {
      enabled: true,
      resellers: false,
      termsURL: 'https://example.com/terms',
      termsVersion: '2026-03',
      allowedDomains: ['example.com', 'example.org'],
      blockedDomains: [],
      priceBook: 'book-2',
      creditMicros: 12_500_000,
      currency: 'USD',
      quota: { memoryBytes: 8 * 2 ** 30 },
    },
  });
});

test('another provider of captchas needs its own secret and address', async () => {
  const asked = show({
    captcha: 'hcaptcha',
    siteKey: 'a',
    hasCaptchaSecret: true,
    verifyURL: 'https://api.hcaptcha.com/siteverify',
  });
  const user = userEvent.setup();
  await user.selectOptions(screen.getByLabelText('Provider'), 'turnstile');
  await save();
  await waitFor(() => expect(screen.getByLabelText(/Secret/)).toHaveAttribute('aria-invalid', 'true'));
  expect(asked).toEqual([]);
  await user.type(screen.getByLabelText(/Secret/), 'sesame');
  await save();
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]?.body).toMatchObject({ captcha: 'turnstile', verifyURL: '', captchaSecret: 'sesame' });
});

test('an amount or a limit that is no number is not sent', async () => {
  const asked = show({});
  await userEvent.type(screen.getByLabelText(/Initial credit/), 'lots');
  await userEvent.type(screen.getByLabelText('vCPUs'), 'some');
  await save();
  await waitFor(() => expect(screen.getByLabelText(/Initial credit/)).toHaveAttribute('aria-invalid', 'true'));
  expect(screen.getByLabelText('vCPUs')).toHaveAttribute('aria-invalid', 'true');
  expect(asked).toEqual([]);
});

test('without mail nobody can sign up, which is shown', async () => {
  show({ enabled: true }, { enabled: false });
  expect(await screen.findByText(/does not send e-mail/)).toBeVisible();
});

test('the settings of a reseller are its own, and say that its provider does not permit sign-up', async () => {
  const asked = show({ revision: 4, allowed: false }, { enabled: true }, 'org-1');
  expect(await screen.findByText(/your provider does not permit it/)).toBeVisible();
  await userEvent.click(screen.getByLabelText('Resellers can let people sign up'));
  await save();
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({
    method: 'PATCH',
    path: 'organizations/org-1/sign-up-settings',
    body: { enabled: false, resellers: true },
  });
});
