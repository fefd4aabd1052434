// A user adds a passkey, signs in with it instead of a password and after one, and
// deletes it, with the virtual authenticator that Chromium has (WebAuthn.* of its
// DevTools protocol). Run by ../e2e_passkey_test.go, on localhost: browsers make no
// passkeys for an IP address.
import assert from 'node:assert/strict';
import { button, EMAIL, expect, heading, inspect, open, PASSWORD, PORTAL, run, signIn, step } from './harness.mjs';

const page = await open({});
const browser = await page.context().newCDPSession(page);
const dialog = () => page.getByRole('dialog');
const row = (text) => page.getByRole('row').filter({ hasText: text });
let authenticator;

const verified = (isUserVerified) =>
  browser.send('WebAuthn.setUserVerified', { authenticatorId: authenticator, isUserVerified });
const account = async () => {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Your account' }).click();
  await heading(page, 'Your account');
};
const signOut = async () => {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await heading(page, 'Sign in');
};

step('sign in with the password', async () => {
  await browser.send('WebAuthn.enable');
  ({ authenticatorId: authenticator } = await browser.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  }));
  await page.goto(PORTAL);
  await signIn(page);
  await heading(page, 'Dashboard');
});

step('add a passkey: the password is asked for', async () => {
  await account();
  await page.getByText('No passkeys yet').waitFor();
  await inspect(page, 'account-passkeys-empty-light');
  await button(page, 'Add passkey').click();
  await dialog().getByLabel('Name').fill('laptop');
  expect('403');
  await dialog().getByLabel('Current password').fill('wrong');
  await dialog().getByRole('button', { name: 'Add passkey' }).click();
  await page.locator('#pass-word-help .pf-m-error').waitFor();
  await inspect(page, 'account-passkey-add-light');
  await dialog().getByLabel('Current password').fill(PASSWORD);
  await dialog().getByRole('button', { name: 'Add passkey' }).click();
  await page.getByRole('list', { name: 'Recovery codes' }).waitFor();
  assert.equal(await page.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem').count(), 10);
  await row('laptop').waitFor();
  await inspect(page, 'account-passkeys-light');
  const { credentials } = await browser.send('WebAuthn.getCredentials', { authenticatorId: authenticator });
  assert.equal(credentials.length, 1);
  assert.equal(credentials[0].rpId, 'localhost');
  assert.equal(credentials[0].isResidentCredential, true);
});

step('the same authenticator makes no second one', async () => {
  await button(page, 'Add passkey').click();
  await dialog().getByLabel('Name').fill('again');
  await dialog().getByLabel('Current password').fill(PASSWORD);
  await dialog().getByRole('button', { name: 'Add passkey' }).click();
  await dialog().getByText('It may already have one for your account.').waitFor();
  await dialog().getByRole('button', { name: 'Cancel' }).click();
});

step('sign in with the passkey, without a password', async () => {
  await signOut();
  await inspect(page, 'sign-in-passkey-light');
  await button(page, 'Sign in with a passkey').click();
  await heading(page, 'Your account'); // where it was
});

step('an authenticator that does not verify its user signs nobody in', async () => {
  await signOut();
  await verified(false);
  await button(page, 'Sign in with a passkey').click();
  await page.getByText('you have cancelled').waitFor();
  await verified(true);
});

step('the passkey as second factor', async () => {
  expect('401');
  await page.getByLabel('E-mail address').fill(EMAIL);
  await page.getByLabel('Password').fill(PASSWORD);
  await button(page, 'Sign in').click();
  await page.getByLabel('One-time code').waitFor();
  await inspect(page, 'sign-in-second-factor-light');
  await button(page, 'Sign in with a passkey').click();
  await heading(page, 'Your account'); // where it was
});

step('delete it, and sign in with the password alone', async () => {
  await page.getByText('laptop').waitFor();
  await row('laptop').waitFor();
  assert.ok(!(await row('laptop').innerText()).includes('–'), 'when it was last used is not shown');
  await button(page, 'Delete: laptop').click();
  await dialog().getByLabel('Current password').fill(PASSWORD);
  await dialog().getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No passkeys yet').waitFor();
  await signOut();
  expect('401');
  await button(page, 'Sign in with a passkey').click();
  await page.getByText('the passkey was not accepted').waitFor();
  await signIn(page);
  await heading(page, 'Your account'); // where it was
});

await run();
