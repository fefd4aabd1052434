// An operator's first run, from an empty cluster to a customer and an instance; then a reseller's first customer. As a
// person does it in the VIEW: desktop, phone or keyboard, counted. Run by ../e2e_firstrun_test.go.
import assert from 'node:assert/strict';
import { button, EMAIL, heading, inspect, OPERATOR, PASSWORD, PORTAL, run, step } from './harness.mjs';
import { atMost, person } from './person.mjs';

const { VIEW, RESELLER } = process.env;
const [operator, reseller] = [await person(VIEW), await person(VIEW)];

const dialogOf = (page) => page.getByRole('dialog');

async function signIn({ page, enter, press }, email) {
  await page.goto(PORTAL);
  await enter(page.getByLabel('E-mail address'), email);
  await enter(page.getByLabel('Password'), PASSWORD);
  await press('sign in', button(page, 'Sign in'));
}

step('the wizard opens by itself; what can wait is skipped', async () => {
  const { page, press } = operator;
  await signIn(operator, EMAIL);
  await heading(page, 'Set up the cluster');
  await press('skip the account', button(page, 'Skip'));
  await page.getByRole('heading', { name: 'Nodes and storage' }).waitFor();
  await press('see the nodes', button(page, 'Continue'));
  await page.getByRole('heading', { name: 'External network' }).waitFor();
  await press('skip the network', button(page, 'Skip'));
  await page.getByRole('heading', { name: 'Address and TLS' }).waitFor();
  await press('skip the address', button(page, 'Skip'));
});

step('a name, and prices', async () => {
  const { page, press, enter } = operator;
  await enter(page.getByLabel('Product name'), 'Nordlicht GPU');
  await press('save the name', button(page, 'Save'));
  await page.getByRole('banner').getByText('Nordlicht GPU').waitFor();
  await press('to the prices', button(page, 'Continue'));
  await enter(page.getByRole('group', { name: 'vCPU', exact: true }).getByLabel('Price (EUR)'), '0.012');
  await inspect(page, `first-run-prices-${VIEW}`);
  await press('save the prices', button(page, 'Save prices'));
  await page.getByText('Prices saved.').waitFor();
  await press('to the images', button(page, 'Continue'));
});

step('an image, and a size', async () => {
  const { page, press, enter, act } = operator;
  const dialog = dialogOf(page);
  await press('import an image', button(page, 'Import image'));
  const disk = Buffer.alloc(1 << 20);
  disk.set([0x55, 0xaa], 510); // a boot sector
  await act('choose a file', () =>
    dialog
      .locator('input[type=file]')
      .setInputFiles({ name: 'disk.raw', mimeType: 'application/octet-stream', buffer: disk }),
  );
  await press('import it', dialog.getByRole('button', { name: 'Import' }));
  await dialog.waitFor({ state: 'detached' });
  await page.getByRole('row').filter({ hasText: 'disk' }).getByText('Imported').waitFor();
  await press('to the sizes', button(page, 'Continue'));
  await press('create a flavor', button(page, 'Create flavor'));
  await enter(dialog.locator('#flavor-name'), 'gpu-small');
  await press('create it', dialog.getByRole('button', { name: 'Create' }));
  await dialog.waitFor({ state: 'detached' });
  await press('to the customer', button(page, 'Continue'));
});

step('a customer, and an instance', async () => {
  const { page, press, enter } = operator;
  await enter(page.locator('#customer-name'), 'alpha');
  await enter(page.locator('#customer-email'), 'ada@alpha.example');
  await press('create the customer', button(page, 'Create customer'));
  const link = page.getByRole('textbox', { name: 'Password link' });
  await link.waitFor();
  assert.match(await link.inputValue(), /#\/password\?token=bslt_/);
  await inspect(page, `first-run-customer-${VIEW}`);
  await press('to the instance', button(page, 'Continue'));
  await press('create an instance', page.getByRole('link', { name: 'Create your first instance' }));
  await heading(page, 'Create instance');
  await page.getByRole('rowheader', { name: 'Estimated total' }).waitFor();
  const name = await page.getByLabel('Name').inputValue();
  await inspect(page, `first-run-create-${VIEW}`);
  await press('generate a console password', button(page, 'Generate'));
  await press('create it', button(page, 'Create'));
  await heading(page, name);
  await page.getByText('Running', { exact: true }).first().waitFor();
  await inspect(page, `first-run-instance-${VIEW}`);
  atMost(21, operator);
});

/** call the API as the operator's key. */
async function call(path, body) {
  const headers = { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' };
  const r = await fetch(PORTAL + path, { method: 'POST', headers, body: JSON.stringify(body) });
  assert.ok(r.ok, `${path}: ${r.status} ${await r.clone().text()}`);
  return r.json();
}

step('the operator has a reseller', async () => {
  await call('/v1/organizations', { kind: 'Organization', meta: { name: 'north' }, spec: {} });
  const grants = [{ role: 'reseller', organization: 'north' }];
  const { link } = await call('/v1/users', {
    kind: 'User',
    meta: { name: RESELLER, organization: 'north' },
    spec: { grants },
  });
  await call('/v1/password/link', { token: link.token, password: PASSWORD });
});

step('a reseller and its first customer', async () => {
  const { page, press, enter, go } = reseller;
  const dialog = dialogOf(page);
  await signIn(reseller, RESELLER);
  await heading(page, 'Dashboard');
  await inspect(page, `first-customer-dashboard-${VIEW}`);
  await go('Customers', 'Organizations');
  await press('create an organization', button(page, 'Create organization').first());
  await enter(dialog.locator('#org-name'), 'beta');
  await press('create it', dialog.getByRole('button', { name: 'Create' }));
  await heading(page, 'beta');
  const tab = (name) => page.getByRole('main').getByRole('navigation').getByRole('link', { name, exact: true });
  await press('to its projects', tab('Projects'));
  await press('create a project', button(page, 'Create project'));
  await enter(dialog.locator('#project-name'), 'vision');
  await press('create it', dialog.getByRole('button', { name: 'Create' }));
  await page.getByRole('main').getByText('vision', { exact: true }).waitFor();
  await press('to its members', tab('Members'));
  await press('add an administrator', button(page, 'Add administrator'));
  await enter(dialog.getByLabel('E-mail address'), 'bea@beta.example');
  await press('add her', dialog.getByRole('button', { name: 'Add' }));
  const link = page.getByRole('textbox', { name: 'Password link' });
  await link.waitFor();
  assert.match(await link.inputValue(), /#\/password\?token=bslt_/);
  await inspect(page, `first-customer-${VIEW}`);
  atMost(12, reseller);
});

await run();
