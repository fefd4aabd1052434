// A tenant's first minutes with a real machine, in Chromium: signs in, creates
// an instance with a virtual GPU, logs in on its serial console, runs CUDA
// programs there, sees the chart move, takes a snapshot, reads what it costs
// on this month's invoice, deletes it. Nothing is asked of the API beside the portal. VIEW is desktop or
// phone, IMAGE what the machine is made from. Run by ../../appliance/test/e2e/node/portal_test.go, which starts the node.
import assert from 'node:assert/strict';
import { button, EMAIL, heading, inspect, nav, open, PASSWORD, PORTAL, run, signIn, step } from './harness.mjs';

const { VIEW, IMAGE } = process.env;
const phone = VIEW === 'phone';
const page = await open(phone ? { viewport: { width: 390, height: 844 }, hasTouch: true } : {});
const name = `train-${VIEW}`;
const minutes = 60_000; // ms: the guest is emulated

const goTo = async (entry) => {
  if (phone) await button(page, 'Menu').click();
  await nav(page, entry);
};
const view = (tab) =>
  page
    .getByRole('navigation', { name: `Views of ${name}` })
    .getByRole('link', { name: tab })
    .click();

step('sign in', async () => {
  await page.goto(PORTAL);
  await signIn(page, PASSWORD, EMAIL);
  await heading(page, 'Dashboard');
});

let password = '';
step('create an instance with a virtual GPU', async () => {
  await goTo('Instances');
  await heading(page, 'Instances');
  await page.getByRole('main').getByRole('button', { name: 'Create instance' }).first().click();
  await heading(page, 'Create instance');
  await page.getByLabel('Name').fill(name);
  await page.getByLabel('Image or app').selectOption(`image:${IMAGE}`);
  await page.getByLabel('Flavor').selectOption('guest');
  await page.getByRole('radiogroup', { name: 'GPU', exact: true }).getByRole('radio').nth(1).check();
  await button(page, 'Advanced').click();
  await page.getByLabel('VRAM (GiB)').fill('1');
  await page.getByLabel('Guaranteed GPU time').fill('25');
  await page.getByLabel('Tier').selectOption('premium');
  await button(page, 'Generate').click();
  password = await page.getByLabel('Console password').inputValue();
  assert.match(password, /^[a-z2-9-]{19}$/);
  await inspect(page, `machine-create-${VIEW}`);
  await button(page, 'Create').click();
  await heading(page, name);
});

step('each step of it is shown, until it runs', async () => {
  await page
    .getByRole('status', { name: 'State' })
    .getByText('Running')
    .waitFor({ timeout: 3 * minutes });
  await page.getByRole('heading', { name: 'Connect', exact: true }).waitFor();
  await page.getByText('The GPU is ready').waitFor({ timeout: 8 * minutes });
  await page.getByText('First-boot setup is complete.').waitFor({ timeout: 4 * minutes });
  await inspect(page, `machine-overview-${VIEW}`);
});

// The terminal's lines, as a screen reader has them.
const terminal = page.getByRole('group', { name: 'Serial console' });
async function typed(line) {
  await page.getByRole('textbox', { name: 'Serial console' }).focus();
  await page.keyboard.type(line, { delay: 20 });
  await page.keyboard.press('Enter');
}
/** said waits until they show it, as one: a phone's are short. */
async function said(what) {
  let text = '';
  for (const end = Date.now() + 4 * minutes; Date.now() < end; await page.waitForTimeout(500)) {
    text = (await terminal.getByRole('listitem').allInnerTexts()).join('');
    if (text.includes(what)) return;
  }
  assert.fail(`the console does not say ${what}, but: ${text}`);
}

step('log in on the serial console', async () => {
  await page.getByRole('link', { name: 'Open the console' }).click();
  await page.getByRole('status').getByText('Connected.').waitFor();
  await typed(''); // a new prompt
  await said(`${name} login:`);
  await typed('debian');
  await said('Password:');
  await typed(password);
  await said(`debian@${name}`);
});

step('CUDA programs run in it', async () => {
  await typed(phone ? 'nvidia-smi | grep MiB' : 'nvidia-smi'); // all of it is more than a phone shows
  await said('1024MiB');
  await typed('/opt/basalt/demo/vecadd && echo vecadd is over');
  await said('max error 0, OK');
  await inspect(page, `machine-console-${VIEW}`);
});

step('the chart moves', async () => {
  // A program every few seconds shows in the chart: without the pause the emulated
  // machine would take a processor until it is deleted.
  await typed('for i in $(seq 30); do /opt/basalt/demo/matmul; sleep 2; done; echo work is over');
  await view('Monitoring');
  const gpu = page.getByRole('figure', { name: 'GPU', exact: true });
  await gpu
    .locator('[data-series="gpu"]')
    .filter({ hasText: /[1-9]/ })
    .waitFor({ timeout: 2 * minutes });
  await inspect(page, `machine-monitoring-${VIEW}`);
});

step('a snapshot of its disk', async () => {
  await view('Storage');
  await page
    .getByRole('button', { name: /^Actions: / })
    .first()
    .click();
  await page.getByRole('menuitem', { name: 'Create snapshot', exact: true }).click();
  await page.getByRole('dialog').getByLabel('Name').fill('before');
  await page.getByRole('dialog').getByRole('button', { name: 'Create snapshot' }).click();
  await page.getByRole('row').filter({ hasText: 'before' }).getByText('Ready').waitFor();
  await inspect(page, `machine-storage-${VIEW}`);
});

step('the snapshot goes before its disk', async () => {
  await page
    .getByRole('row')
    .filter({ hasText: 'before' })
    .getByRole('button', { name: /^Actions: / })
    .click();
  await page.getByRole('menuitem', { name: 'Delete', exact: true }).click();
  await page.getByRole('dialog').getByRole('textbox').fill('before');
  await page.keyboard.press('Enter');
  await page.getByText('No snapshots yet').waitFor();
});

step('what it costs, to the minute', async () => {
  await goTo('Usage');
  await heading(page, 'Usage');
  await page.getByRole('row').filter({ hasText: 'GPU time' }).waitFor();
  await inspect(page, `machine-usage-${VIEW}`);
  await goTo('Invoices');
  await page.getByRole('link', { name: 'Month to date' }).click();
  await page.getByRole('link', { name: `View breakdown: Reserved GPU share, ${name}` }).click();
  await page
    .getByRole('button', { name: /^Show usage records/ })
    .first()
    .click();
  await page
    .getByRole('grid', { name: /^Usage records for the hour/ })
    .getByRole('row')
    .nth(1)
    .waitFor();
  await inspect(page, `machine-invoice-${VIEW}`);
});

step('delete it by its name', async () => {
  await goTo('Instances');
  await page.getByRole('link', { name }).click();
  await button(page, 'Delete').click();
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await page.keyboard.press('Enter');
  await heading(page, 'Instance not found');
  assert.equal(await page.getByRole('link', { name: 'Back to instances' }).count(), 1);
});

await run();
