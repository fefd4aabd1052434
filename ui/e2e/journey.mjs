// From a stranger to a tenant who runs nvidia-smi over SSH, in a browser alone and without an SSH key: signs up by mail,
// chooses a GPU on the dashboard, creates the instance as the form begins, and opens a shell. MAILBOX is the maildir of the
// mail server, VIEW desktop, phone or keyboard. Run by ../../appliance/test/e2e/node/journey_test.go, which starts the node.
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { button, EMAIL, heading, inspect, PASSWORD, PORTAL, run, step } from './harness.mjs';
import { atMost, person } from './person.mjs';

const { MAILBOX, VIEW, ORGANIZATION } = process.env;
const stranger = await person(VIEW);
const { page, act, press, tick, enter } = stranger;
const minutes = 60_000; // ms: the guest is emulated

/** link returns the link of the message that arrives. */
async function link() {
  for (const end = Date.now() + 2 * minutes; Date.now() < end; await page.waitForTimeout(200)) {
    for (const name of await readdir(join(MAILBOX, 'new')).catch(() => [])) {
      const text = (await readFile(join(MAILBOX, 'new', name), 'utf8')).replace(/=\r?\n/g, '').replaceAll('=3D', '=');
      const found = new RegExp(`${PORTAL}/[^\\s"<>]*sign-up[^\\s"<>]*`).exec(text);
      if (text.includes(EMAIL) && found) return found[0];
    }
  }
  return assert.fail(`no message with a link came to ${EMAIL}`);
}

step('ask for a link', async () => {
  await page.goto(`${PORTAL}/#/sign-up`);
  await heading(page, 'Create an account');
  await enter(page.getByLabel('E-mail address'), EMAIL);
  await inspect(page, `journey-sign-up-${VIEW}`);
  await press('ask for the link', button(page, 'Send the link'));
  await page.getByText(`A message is on its way to ${EMAIL}`).waitFor();
});

step('follow it, and create the account', async () => {
  const to = await link();
  await act('open the link', () => page.goto(to));
  await enter(page.getByLabel('Organization'), ORGANIZATION);
  await enter(page.getByLabel('Password'), PASSWORD);
  await tick('accept the terms', page.getByRole('checkbox', { name: /^I accept the/ }));
  await inspect(page, `journey-account-${VIEW}`);
  await press('create the account', button(page, 'Create the account'));
  await heading(page, 'Dashboard');
});

step('choose a GPU', async () => {
  const gpu = page.getByRole('list', { name: 'Choose a GPU' }).getByRole('link').first();
  await gpu.waitFor();
  await inspect(page, `journey-dashboard-${VIEW}`);
  await press('choose a GPU', gpu);
});

let name = '';
step('create the instance as the form begins', async () => {
  await heading(page, 'Create instance');
  await page.getByRole('rowheader', { name: 'Estimated total' }).waitFor();
  assert.notEqual(await page.getByLabel('Image or app').inputValue(), '');
  name = await page.getByLabel('Name').inputValue();
  await inspect(page, `journey-create-${VIEW}`);
  await press('create the instance', button(page, 'Create'));
  await heading(page, name);
  await page.getByText('The GPU is ready').waitFor({ timeout: 5 * minutes });
  await inspect(page, `journey-instance-${VIEW}`);
});

step('run nvidia-smi in a shell', async () => {
  await press('open a shell', page.getByRole('link', { name: 'Open a shell in the browser' }));
  await page.getByRole('status').getByText('Connected.').waitFor();
  const terminal = page.getByRole('group', { name: 'Shell' });
  await page.getByRole('textbox', { name: 'Shell' }).focus();
  await act('enter nvidia-smi', async () => {
    await page.keyboard.type(VIEW === 'phone' ? 'nvidia-smi | grep MiB' : 'nvidia-smi', { delay: 20 }); // all of it is more than a phone shows
    await page.keyboard.press('Enter');
  });
  let text = '';
  for (const end = Date.now() + 3 * minutes; !/[0-9]MiB/.test(text); await page.waitForTimeout(500)) {
    assert.ok(Date.now() < end, `the shell does not show memory in MiB, but: ${text}`);
    text = (await terminal.getByRole('listitem').allInnerTexts()).join('');
  }
  await inspect(page, `journey-shell-${VIEW}`);
  atMost(8, stranger);
});

await run();
