// A tenant's first minutes with a real machine, in Chromium: signs in, creates
// an instance with a virtual GPU, logs in on its serial console, runs CUDA
// programs there, sees the chart move, takes a snapshot, reads what it costs,
// deletes it. Nothing is asked of the API beside the portal. VIEW is desktop or
// phone. Run by ../../appliance/e2e/portal_test.go, which starts the node.
import assert from 'node:assert/strict';
import { button, EMAIL, heading, inspect, nav, open, PASSWORD, PORTAL, run, signIn, step } from './harness.mjs';

const { VIEW } = process.env;
const phone = VIEW === 'phone';
const page = await open(phone ? { viewport: { width: 390, height: 844 }, hasTouch: true } : {});
const name = `train-${VIEW}`;
const minutes = 60_000; // ms: the guest is emulated

const goTo = async (entry) => {
  if (phone) await button(page, 'Menu').click();
  await nav(page, entry);
};
const view = (tab) => page.getByRole('navigation', { name: `Views of ${name}` }).getByRole('link', { name: tab }).click();

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
  await page.getByLabel('Image or app').selectOption('image:debian');
  await page.getByLabel('Flavor').selectOption('guest');
  await page.getByLabel('Give it a virtual GPU').check();
  await page.getByLabel('VRAM limit in GiB').fill('1');
  await page.getByLabel('Guaranteed share').fill('25');
  await button(page, 'Make one up').click();
  password = await page.getByLabel('Password for the console').inputValue();
  assert.match(password, /^[a-z2-9-]{19}$/);
  await inspect(page, `machine-create-${VIEW}`);
  await button(page, 'Create').click();
  await heading(page, name);
});

step('each step of it is shown, until it runs', async () => {
  await page.getByRole('status', { name: 'State' }).getByText('Running').waitFor({ timeout: 3 * minutes });
  await page.getByText('What now?').waitFor();
});

