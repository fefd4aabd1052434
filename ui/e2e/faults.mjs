// What goes wrong around the portal: the connection, the server, the session,
// hostile text; and the portal by keyboard alone, and twice as large. CONTROL
// stops and starts basaltd: ../e2e_faults_test.go.
import assert from 'node:assert/strict';
import { attack, harmless } from './hostile.mjs';
import {
  button,
  heading,
  inspect,
  inspectIn,
  open,
  OPERATOR,
  PORTAL,
  run,
  signIn,
  step,
  tolerate,
} from './harness.mjs';

const { CONTROL } = process.env;
const control = async (what) => assert.equal((await fetch(`${CONTROL}/${what}`, { method: 'POST' })).status, 200);
const headers = { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' };
const ask = async (method, path, body) =>
  (await fetch(`${PORTAL}${path}`, { method, headers, body: body && JSON.stringify(body) })).json();

const page = await open({});
const find = (p) => p.getByRole('combobox', { name: 'Pages and resources by name, ID or address' });

step('by keyboard alone: sign in, search, create', async () => {
  await page.goto(PORTAL);
  await page.getByLabel('E-mail address').focus();
  await page.keyboard.type(process.env.EMAIL);
  await page.keyboard.press('Tab');
  await page.keyboard.type(process.env.PASSWORD);
  await page.keyboard.press('Enter');
  await heading(page, 'Dashboard');
  await page.keyboard.press('Control+k');
  await find(page).waitFor();
  await page.keyboard.type('inst');
  await page.getByRole('option', { name: 'Instances' }).waitFor();
  await inspect(page, 'find-pages-light');
  await page.keyboard.press('Enter');
  await heading(page, 'Instances');
  const to = async (name) => {
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press('Tab');
      if (
        await page.evaluate((n) => {
          const at = document.activeElement;
          return (at.getAttribute('aria-label') ?? at.labels?.[0]?.textContent ?? at.textContent ?? '')
            .trim()
            .startsWith(n);
        }, name)
      )
        return;
    }
    throw new Error(`the Tab key does not lead to ${name}`);
  };
  await to('Create instance');
  await page.keyboard.press('Enter');
  await heading(page, 'Create instance');
  await to('Image or app');
  await page.keyboard.type('debian');
  await to('Name');
  await page.keyboard.type('train-1');
  await to('Flavor');
  await page.keyboard.type('tiny');
  await page.getByRole('rowheader', { name: 'Estimated total' }).waitFor();
  await page.keyboard.press('Enter'); // on a select: nothing; the form has its button
  await to('Create');
  await page.keyboard.press('Enter');
  await page.getByText('Nobody can sign in to this instance').waitFor();
  await to('Create without access');
  await page.keyboard.press('Enter');
  await heading(page, 'train-1');
  await page.getByRole('status', { name: 'State' }).getByText('Running').waitFor();
});

step('the task tells how it ended', async () => {
  await page.getByRole('button', { name: /^Tasks: / }).click();
  const dialog = page.getByRole('dialog', { name: 'Tasks' });
  await dialog.getByRole('listitem').filter({ hasText: 'train-1' }).getByText('Completed').waitFor();
  await inspect(page, 'tasks-light');
  await dialog.getByRole('link', { name: 'train-1' }).click();
  await dialog.waitFor({ state: 'detached' });
});

step('the search finds objects, and remembers', async () => {
  await page.keyboard.press('Control+k');
  await find(page).fill('RAIN');
  await page.getByRole('option', { name: 'train-1' }).waitFor();
  await inspect(page, 'find-objects-light');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await heading(page, 'train-1');
  await button(page, 'Search everything (Ctrl-K)').click();
  await page.getByText('Recent').waitFor();
  await page.keyboard.press('Escape');
  await find(page).waitFor({ state: 'detached' });
});

step('the connection goes, and comes back', async () => {
  tolerate('ERR_INTERNET_DISCONNECTED', 'ERR_NETWORK_CHANGED');
  await page.goto(`${PORTAL}/#/instances`);
  await page.getByRole('row').filter({ hasText: 'train-1' }).getByText('Running').waitFor();
  await page.context().setOffline(true);
  await page.getByText('Reconnecting…').waitFor();
  await inspect(page, 'offline-light');
  const { items } = await ask('GET', '/v1/instances?search=train-1');
  await ask('POST', `/v1/instances/${items[0].meta.id}/stop`);
  await page.context().setOffline(false);
  await page.getByRole('row').filter({ hasText: 'train-1' }).getByText('Stopped').waitFor();
  await page.getByText('Reconnecting…').waitFor({ state: 'detached' });
  tolerate();
});

step('the server is stopped and started', async () => {
  tolerate(
    'ERR_CONNECTION_REFUSED',
    'ERR_CONNECTION_RESET',
    'ERR_CONNECTION_CLOSED',
    'ERR_INCOMPLETE_CHUNKED_ENCODING',
    'ERR_EMPTY_RESPONSE',
    'ERR_SOCKET_NOT_CONNECTED',
    '503',
  );
  await control('stop');
  await page.getByText('Reconnecting…').waitFor();
  await control('start');
  const { items } = await ask('GET', '/v1/instances?search=train-1');
  await ask('POST', `/v1/instances/${items[0].meta.id}/start`);
  await page.getByRole('row').filter({ hasText: 'train-1' }).getByText('Running').waitFor();
  await page.getByText('Reconnecting…').waitFor({ state: 'detached' });
  tolerate();
});

step('the session ends on the server, and one is back where one was', async () => {
  tolerate('401');
  await page.goto(`${PORTAL}/#/instances?search=train`);
  await page.getByRole('link', { name: 'train-1' }).waitFor();
  const cookie = (await page.context().cookies()).find((c) => c.name === 'basalt-session');
  await fetch(`${PORTAL}/v1/logout`, { method: 'POST', headers: { Authorization: `Bearer ${cookie.value}` } });
  await page.reload();
  await heading(page, 'Sign in');
  await signIn(page);
  await heading(page, 'Instances');
  await page.getByRole('link', { name: 'train-1' }).waitFor();
  assert.match(page.url(), /#\/instances\?search=train$/);
  tolerate();
});

step('hostile text in every field', async () => {
  tolerate('400', '404', '413', '422');
  const enter = () => page.keyboard.press('Enter');
  assert.ok((await attack(page, 'filter', enter)) >= 1);
  await page.goto(`${PORTAL}/#/instances/new`);
  await heading(page, 'Create instance');
  await page.getByLabel('Image or app').selectOption('image:debian-12');
  await page.getByLabel('Flavor').selectOption('tiny');
  assert.ok((await attack(page, 'create', () => button(page, 'Create').click())) >= 3);
  await inspect(page, 'hostile-create-light');
  await page.goto(`${PORTAL}/#/members`);
  await button(page, 'Add member').click();
  assert.ok(
    (await attack(page, 'member', () =>
      page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click(),
    )) >= 1,
  );
  await inspect(page, 'hostile-member-light');
  await page.goto(`${PORTAL}/#/keys`);
  await page.getByRole('main').getByRole('button', { name: 'Create API key' }).first().click();
  assert.ok(
    (await attack(page, 'key', () =>
      page.getByRole('dialog').getByRole('button', { name: 'Create', exact: true }).click(),
    )) >= 1,
  );
  await page.keyboard.press('Escape');
  await page.goto(`${PORTAL}/#/instances/${encodeURIComponent('<img src=x onerror=pwned=1>')}`);
  await heading(page, 'Instance not found');
  await harmless(page, 'address');
  await page.keyboard.press('Control+k');
  assert.ok((await attack(page, 'search', async () => undefined)) >= 1);
  await page.keyboard.press('Escape');
  await find(page).waitFor({ state: 'detached' });
  tolerate();
});

step('twice as large, dark, on a phone', async () => {
  const forms = ['dark', 'phone', 'zoom'];
  for (const [path, title] of [
    ['/', 'Dashboard'],
    ['/instances', 'Instances'],
    ['/instances/new', 'Create instance'],
  ]) {
    await page.goto(`${PORTAL}/#${path}`);
    await heading(page, title);
    await inspectIn(page, `faults${path.replaceAll('/', '-')}`, ...forms);
  }
  await button(page, 'Search everything (Ctrl-K)').click();
  await find(page).fill('train');
  await page.getByRole('option', { name: 'train-1' }).waitFor();
  await inspectIn(page, 'find', ...forms);
  await page.getByRole('option', { name: 'train-1' }).click();
  await heading(page, 'train-1');
  await page.getByRole('button', { name: /^Tasks: / }).click();
  await page.getByRole('dialog', { name: 'Tasks' }).waitFor();
  await inspectIn(page, 'tasks', ...forms);
});

await run();
