// What a tenant needs beside the instance itself: volumes and snapshots,
// networks, the instance's history, the audit trail, the own account, projects,
// apps. Run by ../e2e_tenant_test.go.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { createHmac } from 'node:crypto';
import {
  button,
  expect,
  heading,
  inspect,
  inspectIn,
  nav,
  open,
  OPERATOR,
  PASSWORD,
  PORTAL,
  run,
  signIn,
  speak,
  step,
  tolerate,
} from './harness.mjs';

const page = await open({});
const dialog = () => page.getByRole('dialog');
const inDialog = (name) => dialog().getByRole('button', { name, exact: true }).click();
const row = (text) => page.getByRole('row').filter({ hasText: text });
const choose = async (of, action) => {
  await button(page, `Actions: ${of}`).click();
  await page.getByRole('menuitem', { name: action, exact: true }).click();
};
/** totp is the present code of a secret (RFC 6238). */
function totp(secret) {
  const bits = [...secret]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000)));
  const sum = createHmac('sha1', key).update(counter).digest();
  return String((sum.readUInt32BE(sum[19] & 15) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}
/** view of the instance’s page. */
const view = (name) =>
  page
    .getByRole('navigation', { name: /^Views of/ })
    .getByRole('link', { name, exact: true })
    .click();
const remove = async (name) => {
  await choose(name, 'Delete');
  await page.getByLabel(`Type ${name} to confirm`).fill(name);
  await inDialog('Delete');
};

step('sign in', async () => {
  await page.goto(PORTAL);
  await signIn(page);
  await heading(page, 'Dashboard');
});

step('an error goes once its field is changed', async () => {
  await nav(page, 'Volumes');
  await heading(page, 'Volumes');
  await page.getByText('No volumes yet').waitFor();
  await inspect(page, 'volumes-empty-light');
  await button(page, 'Create volume').first().click();
  await dialog().getByLabel('Name').fill('No Good');
  await inDialog('Create');
  const help = page.locator('#vol-name-help');
  await help.locator('.pf-m-error').waitFor();
  assert.equal(await dialog().getByLabel('Name').getAttribute('aria-invalid'), 'true');
  await dialog().getByLabel('Name').fill('data');
  await help.locator('.pf-m-error').waitFor({ state: 'detached' });
  assert.equal(await dialog().getByLabel('Name').getAttribute('aria-invalid'), 'false');
});

step('create a volume', async () => {
  await page.locator('#vol-size').fill('2');
  await dialog().getByRole('button', { name: 'Limits' }).click();
  await dialog().getByLabel('Read IOPS').fill('500');
  await dialog().getByRole('button', { name: 'Equivalent CLI / API call' }).click();
  await page.locator('code').getByText('--read-iops 500').waitFor();
  await inspect(page, 'volume-create-light');
  await inDialog('Create');
  await row('data').getByText('Ready').waitFor();
  await row('data').getByText('2 GiB').waitFor();
});

step('an instance to attach it to', async () => {
  await page.goto(`${PORTAL}/#/instances/new`);
  await heading(page, 'Create instance');
  await page.locator('#new-name').fill('train-1');
  await page.getByLabel('Image or app').selectOption('image:debian-12');
  await page.getByLabel('Flavor').selectOption('tiny');
  await button(page, 'Generate').click();
  await button(page, 'Create').click();
  await heading(page, 'train-1');
  await page.getByRole('status', { name: 'State' }).getByText('Running').waitFor();
});

step('attach it on the instance’s page, while it runs', async () => {
  await view('Storage');
  await row('root disk').getByText('Ready').waitFor();
  await button(page, 'Attach volume').click();
  await inDialog('Attach');
  await row('data').getByText('Ready').waitFor();
  await inspect(page, 'instance-storage-light');
});

step('grow it, limit it', async () => {
  await choose('data', 'Resize');
  expect('400');
  await page.locator('#grow-size').fill('1');
  await inDialog('Resize');
  await page.locator('#grow-size-help .pf-m-error').getByText('cannot shrink').waitFor();
  await inspect(page, 'volume-grow-light');
  await page.locator('#grow-size').fill('3');
  await page.locator('#grow-size-help .pf-m-error').waitFor({ state: 'detached' });
  await inDialog('Resize');
  await row('data').getByText('3 GiB').waitFor();
  await choose('data', 'Limits');
  assert.equal(await dialog().getByLabel('Read IOPS').inputValue(), '500');
  await dialog().getByLabel('Read IOPS').fill('');
  await inDialog('Save');
  await dialog().waitFor({ state: 'detached' });
});

step('snapshots: of both disks; a clone; roll back', async () => {
  await choose('data', 'Create snapshot');
  await dialog().getByLabel('Name').fill('before');
  await inDialog('Create snapshot');
  await row('before').getByText('Ready').waitFor();
  await inspect(page, 'instance-storage-snapshot-light');
  await nav(page, 'Snapshots');
  await heading(page, 'Snapshots');
  await choose('before', 'Create volume');
  await dialog().getByLabel('Name').fill('copy');
  await inDialog('Create');
  await choose('before', 'Roll back');
  expect('409');
  await inDialog('Roll back');
  await dialog().getByText('it is in use by an instance').waitFor();
  await inspect(page, 'snapshot-rollback-light');
  await inDialog('Cancel');
  await inspect(page, 'snapshots-light');
});

step('detach it, roll it back, delete it', async () => {
  await nav(page, 'Volumes');
  await row('copy').getByText('Ready').waitFor();
  await inspect(page, 'volumes-light');
  await choose('data', 'Detach');
  await inDialog('Detach');
  await row('data').getByText('Not attached').waitFor();
  await nav(page, 'Snapshots');
  await choose('before', 'Roll back');
  await inDialog('Roll back');
  await dialog().waitFor({ state: 'detached' });
  await nav(page, 'Volumes');
  await row('data').getByText('Ready').waitFor();
  await remove('copy');
  await row('copy').waitFor({ state: 'detached' });
  await nav(page, 'Snapshots');
  await remove('before');
  await page.getByText('No snapshots yet').waitFor();
  await nav(page, 'Volumes');
  await remove('data');
  await row('data').waitFor({ state: 'detached' });
});

step('a list: order, labels, columns, export, and many at once', async () => {
  const key = { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' };
  const project = (await (await fetch(`${PORTAL}/v1/projects?name=render`, { headers: key })).json()).items[0].meta.id;
  for (const [name, gib] of [
    ['many-a', 3],
    ['many-b', 1],
    ['many-c', 2],
  ]) {
    const body = {
      kind: 'Volume',
      meta: { name, project, labels: { team: 'vision' } },
      spec: { sizeBytes: gib * 2 ** 30 },
    };
    const made = await fetch(`${PORTAL}/v1/volumes`, { method: 'POST', headers: key, body: JSON.stringify(body) });
    assert.equal(made.status, 201);
  }
  const names = async () =>
    (await page.getByRole('grid').getByRole('row').allInnerTexts()).flatMap((r) => r.match(/many-\w/) ?? []);
  const inOrder = (wanted) =>
    page.waitForFunction(
      (w) => (document.querySelector('[role=grid]')?.innerText.match(/many-\w/g) ?? []).join() === w,
      wanted,
    );
  await page.getByRole('textbox', { name: 'Filter by labels' }).fill('team=vision');
  await page.keyboard.press('Enter');
  await inOrder('many-a,many-b,many-c');
  await page.getByRole('columnheader', { name: 'Size' }).getByRole('button').click();
  await inOrder('many-b,many-c,many-a');
  await button(page, 'Size').focus();
  await page.keyboard.press('Enter');
  await inOrder('many-a,many-c,many-b');
  assert.match(page.url(), /[?&]labels=team%3Dvision/);
  assert.match(page.url(), /[?&]sort=-spec\.sizeBytes/);
  await page.goBack();
  await inOrder('many-b,many-c,many-a');
  await button(page, 'View').click();
  await page.getByRole('checkbox', { name: 'Labels' }).check();
  await page.getByRole('checkbox', { name: 'Attached to' }).uncheck();
  await page.getByRole('radio', { name: 'Comfortable' }).check();
  await inspect(page, 'list-view-light');
  await page.reload(); // the address and the view are as they were
  await inOrder('many-b,many-c,many-a');
  await row('many-a').getByText('team=vision').waitFor();
  assert.equal(await page.getByRole('columnheader', { name: 'Attached to' }).count(), 0);
  const [file] = await Promise.all([page.waitForEvent('download'), button(page, 'Export CSV').click()]);
  assert.match(file.suggestedFilename(), /^volumes-\d{8}T\d{4}Z\.csv$/);
  const text = await readFile(await file.path(), 'utf8');
  assert.deepEqual(text.match(/many-\w/g), ['many-b', 'many-c', 'many-a']);
  await page.getByRole('checkbox', { name: 'Select all rows on this page' }).check();
  await page.getByRole('toolbar').getByText('3 selected').waitFor();
  await inspectIn(page, 'list-bulk', 'dark', 'phone');
  await page.getByRole('toolbar').getByRole('button', { name: 'Delete' }).click();
  await dialog().getByText('Delete: 3 objects').waitFor();
  assert.equal(await dialog().getByRole('button', { name: 'Delete' }).isDisabled(), true);
  await dialog().getByLabel('Enter 3 to confirm').fill('3');
  const refused = (await (await fetch(`${PORTAL}/v1/volumes?name=many-c`, { headers: key })).json()).items[0].meta.id;
  const refuse = (r) =>
    r.request().method() === 'DELETE'
      ? r.fulfill({
          status: 409,
          contentType: 'application/problem+json',
          body: JSON.stringify({ code: 'conflict', detail: 'volume many-c is in use', status: 409 }),
        })
      : r.continue();
  await page.route(`**/v1/volumes/${refused}`, refuse);
  expect('409');
  await inDialog('Delete');
  await dialog().getByText('1 object failed').waitFor();
  await dialog().getByText('volume many-c is in use').waitFor();
  await inspect(page, 'list-bulk-failed-light');
  await page.unroute(`**/v1/volumes/${refused}`, refuse);
  await inDialog('Try again');
  await dialog().waitFor({ state: 'detached' });
  await page.getByText('No matches').waitFor();
  assert.deepEqual(await names(), []);
  await button(page, 'Clear all filters').click();
  await button(page, 'View').click();
  await page.getByRole('checkbox', { name: 'Labels' }).uncheck();
  await page.getByRole('checkbox', { name: 'Attached to' }).check();
});

step('a network: three mistakes at once, and one that the server finds', async () => {
  await nav(page, 'Networks');
  await row('default').getByText('Ready').waitFor();
  await button(page, 'Create network').click();
  await page.locator('#net-name').fill('Back End');
  await dialog().getByLabel('IPv4 range').fill('10.20.0.1/24');
  await page.locator('#net-dns').fill('resolver');
  await inDialog('Create');
  await dialog().getByText('Correct 3 fields').waitFor();
  assert.equal(await dialog().locator('[aria-invalid=true]').count(), 3);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'net-name');
  await inspect(page, 'network-mistakes-light');
  await page.locator('#net-name').fill('backend');
  await page.locator('#net-dns').fill('');
  await dialog().getByLabel('IPv4 range').fill('127.0.0.0/8');
  await dialog().getByText('Correct').waitFor({ state: 'detached' });
  expect('400');
  await inDialog('Create'); // only the server knows which ranges are reserved
  await page.locator('#net-cidr4-help .pf-m-error').waitFor();
  await page.waitForFunction(() => document.activeElement.id === 'net-cidr4');
  await inspect(page, 'network-create-light');
  await dialog().getByLabel('IPv4 range').fill('10.20.0.0/24');
  await inDialog('Create');
  await row('backend').getByText('Ready').waitFor();
  await inspect(page, 'networks-light');
  await remove('backend');
  await row('backend').waitFor({ state: 'detached' });
});

step('a security group and its rules', async () => {
  await nav(page, 'Security groups');
  await row('default').waitFor();
  await button(page, 'Create security group').click();
  await dialog().getByLabel('Name').fill('web');
  await inDialog('Create');
  await heading(page, 'web');
  await button(page, 'Add rule').click();
  await page.locator('#rule-1-ports').fill('443-80');
  await button(page, 'Save rules').click();
  await page.locator('#rule-1-ports-help .pf-m-error').waitFor();
  await inspect(page, 'security-group-light');
  await page.locator('#rule-1-ports').fill('443');
  await page.locator('#rule-1-ports-help .pf-m-error').waitFor({ state: 'detached' });
  await button(page, 'Save rules').click();
  await page.getByText('Rules saved. They apply immediately.').waitFor();
  await page.reload();
  assert.equal(await page.locator('#rule-1-ports').inputValue(), '443');
});

step('the instance’s network: groups, floating IP, trace', async () => {
  await page.goto(`${PORTAL}/#/instances`);
  await page.getByRole('link', { name: 'train-1' }).click();
  await view('Network');
  await page.getByText('Port in default').waitFor();
  await button(page, 'Run check').waitFor();
  await page.getByLabel('Destination').last().fill('10.0.0.1');
  await button(page, 'Change security groups').click();
  await dialog().getByLabel('web').check();
  await inDialog('Save');
  await page.getByRole('main').getByRole('link', { name: 'web' }).waitFor();
  await button(page, 'Attach floating IP').click();
  await dialog().getByLabel('Name').fill('public');
  await inDialog('Allocate floating IP');
  await page.getByText('203.0.113.').waitFor();
  await page.locator('#trace-to').fill('203.0.113.77');
  await button(page, 'Run check').click();
  await page.getByText(/(Not r|R)eachable$/).waitFor();
  await inspect(page, 'instance-network-light');
  await nav(page, 'Floating IPs');
  await row('public').getByText('train-1').waitFor();
  await row('public').getByText('Ready').waitFor();
  await inspect(page, 'floating-ips-light');
  await choose('public', 'Detach');
  await inDialog('Detach');
  await row('public').getByText('Not attached').waitFor();
});

step('a load balancer', async () => {
  await nav(page, 'Load balancers');
  await page.getByText('No load balancers yet').waitFor();
  await button(page, 'Create load balancer').first().click();
  await dialog().getByLabel('Name').fill('front');
  await button(page, 'Add backend').click();
  await dialog()
    .getByLabel('Floating IP')
    .selectOption(
      await dialog().getByLabel('Floating IP').locator('option', { hasText: 'public' }).getAttribute('value'),
    );
  await inspect(page, 'load-balancer-create-light');
  await inDialog('Create');
  await row('front').getByText('Ready').waitFor();
  await row('front').getByText('203.0.113.').waitFor();
  await inspect(page, 'load-balancers-light');
});

step('a load balancer is changed, while somebody else changes it too', async () => {
  await choose('front', 'Edit');
  assert.equal(await dialog().getByLabel('Network').isDisabled(), true);
  await page.locator('#lb-port').fill('8081');
  await button(page, 'Add backend').click();
  await inspect(page, 'load-balancer-edit-light');
  const key = { headers: { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' } };
  const { items } = await (await fetch(`${PORTAL}/v1/load-balancers?name=front`, key)).json();
  const { kind, meta, spec } = items[0];
  const theirs = await fetch(`${PORTAL}/v1/load-balancers/${meta.id}`, {
    ...key,
    method: 'PUT',
    body: JSON.stringify({ kind, meta: { ...meta, name: 'edge' }, spec }),
  });
  assert.equal(theirs.status, 200);
  await dialog().getByText('Someone else changed other fields').waitFor();
  await page.waitForFunction(() => document.querySelector('#lb-name')?.value === 'edge');
  await inDialog('Save');
  await dialog().waitFor({ state: 'detached' });
  await row('edge').getByText('tcp/8081').waitFor();
  await row('edge').getByText('of 2 healthy').waitFor();
});

step('the instance’s history is kept', async () => {
  await page.goto(`${PORTAL}/#/instances`);
  await page.getByRole('link', { name: 'train-1' }).click();
  const events = page.getByRole('list', { name: 'Events' });
  await events.getByText('Created', { exact: false }).waitFor();
  await events.getByText('Running').first().waitFor();
  await button(page, 'Stop').click();
  await inDialog('Stop');
  await events.getByText('Stop requested').waitFor();
  await events.getByText('Stopped').waitFor();
  assert.equal(await events.getByText('PatchInstance').count(), 0); // an API's name
  await inspect(page, 'instance-history-light');
  const key = { headers: { Authorization: `Bearer ${OPERATOR}` } };
  const id = page.url().match(/ins-[0-9a-f]+/)[0];
  const first = await (await fetch(`${PORTAL}/v1/instances/${id}/events?limit=2`, key)).json();
  assert.equal(first.items.length, 2);
  const rest = await (await fetch(`${PORTAL}/v1/instances/${id}/events?continue=${first.continue}`, key)).json();
  assert.equal(rest.items.at(-1).operation, 'CreateInstance');
  assert.ok(rest.items[0].revision < first.items[1].revision);
});

step('the instance is rescued with a medium', async () => {
  await button(page, 'Rescue').click();
  await dialog().getByLabel('Installation medium').selectOption('live');
  await inspect(page, 'instance-rescue-light');
  await inDialog('Restart from the medium');
  await page.getByText('Boots from the rescue medium live').waitFor();
  const events = page.getByRole('list', { name: 'Events' });
  await events.getByText('Rescue requested').waitFor();
  await events.getByText('Running').first().waitFor();
  await inspect(page, 'instance-rescued-light');
  await button(page, 'End the rescue').click();
  await inDialog('End the rescue');
  await page.getByText('Boots from the rescue medium live').waitFor({ state: 'detached' });
  await button(page, 'Stop').click();
  await inDialog('Stop');
  await button(page, 'Reinstall').waitFor();
});

step('another name and size', async () => {
  await button(page, 'Edit').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('train-2');
  await dialog.getByLabel('Attach a virtual GPU').check();
  await dialog.getByLabel('VRAM (GiB)').fill('0.01');
  await inspect(page, 'instance-change-light');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.locator('#change-vram-help').getByText('Enter at least 16 MiB.').waitFor();
  await dialog.getByLabel('VRAM (GiB)').fill('2');
  await dialog.getByLabel('Tier').selectOption('premium');
  await dialog.getByText(/^No GPU with 2 GiB of free VRAM .*is available now\. Choose/).waitFor();
  await dialog.getByRole('button', { name: 'Save' }).click(); // refused
  await dialog.getByLabel('Wait in the queue').check();
  await dialog.getByText('There is no room for the new size now').waitFor();
  await inspect(page, 'instance-change-queue-light');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await heading(page, 'train-2');
  await page.getByText('premium').waitFor();
  await inspect(page, 'instance-queue-light');
  await button(page, 'Edit').click();
  await dialog.getByLabel('Name').fill('train-1');
  await dialog.getByLabel('Attach a virtual GPU').uncheck();
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await heading(page, 'train-1');
});

step('the audit trail', async () => {
  await nav(page, 'Audit log');
  await page.getByText('StopInstance').first().waitFor();
  await inspect(page, 'audit-light');
  await button(page, 'Next page').click();
  await page.getByText('Page 2').waitFor();
  await page.getByLabel('Sort order').selectOption('oldest');
  await page.getByText('Page 1').waitFor();
  await page.getByLabel('Sort order').selectOption('newest');
  await page.getByLabel('Action').fill('stopinstance');
  await page.getByLabel('Resource type').fill('Instance');
  await button(page, 'Apply filters').click();
  await page.waitForFunction(
    () =>
      [...document.querySelectorAll('td[data-label="Action"]')].every((c) => c.textContent === 'StopInstance') &&
      document.querySelector('td[data-label="Action"]'),
  );
  assert.match(page.url(), /operation=stopinstance/);
  await inspect(page, 'audit-narrowed-light');
  await page.reload(); // the filter stands in the address
  await page.getByText('StopInstance').first().waitFor();
  assert.equal(await page.getByLabel('Action').inputValue(), 'stopinstance');
  await page.getByLabel('Resource', { exact: true }).fill('<img src=x onerror=alert(1)>');
  await button(page, 'Apply filters').click();
  await page.getByText('No matching entries').waitFor();
  await button(page, 'Clear filters').click();
  await button(page, 'Next page').waitFor();
});

step('projects', async () => {
  await nav(page, 'Projects');
  await button(page, 'Create project').click();
  await page.locator('#proj-name').fill('Lab');
  await inDialog('Create');
  await page.locator('#proj-name-help .pf-m-error').waitFor();
  await page.locator('#proj-name').fill('lab');
  await page.locator('#quota-memoryBytes').fill('8');
  await inspect(page, 'project-create-light');
  await inDialog('Create');
  await row('lab').getByText('Memory: 8 GiB').waitFor();
  await choose('lab', 'Edit');
  await page.locator('#proj-name').fill('lab-2');
  await page.locator('#quota-vcpus').fill('4');
  await inDialog('Save');
  await row('lab-2').getByText('vCPUs: 4').waitFor();
  await inspect(page, 'projects-light');
  await remove('lab-2');
  await row('lab-2').waitFor({ state: 'detached' });
});

step('support access is allowed for some hours, and revoked', async () => {
  await nav(page, 'Support access');
  await heading(page, 'Support access');
  await button(page, 'Allow support access').click();
  await page.locator('#grant-name').fill('ticket-4711');
  await page.locator('#grant-lasts').selectOption('24');
  await page.locator('#grant-reason').fill('no GPU');
  await inspect(page, 'support-grant-create-light');
  await inDialog('Allow support access');
  await row('ticket-4711').getByText('Valid').waitFor();
  await inspect(page, 'support-grants-light');
  await choose('ticket-4711', 'Revoke');
  await inDialog('Revoke');
  await row('ticket-4711').waitFor({ state: 'detached' });
});

step('groups: made, members one by one', async () => {
  await nav(page, 'Groups');
  await heading(page, 'Groups');
  await page.getByText('No groups').waitFor();
  await button(page, 'Create group').click();
  await page.locator('#group-name').fill('ml-team');
  await inDialog('Add role');
  await inspect(page, 'group-create-light');
  await inDialog('Create group');
  await row('ml-team').getByText('Member (render)').waitFor();
  await choose('ml-team', 'Members');
  await dialog().getByText('No members').waitFor();
  expect('400');
  await page.locator('#group-add').fill('nobody@example.com');
  await inDialog('Add');
  await page.locator('#group-add-help .pf-m-error').waitFor();
  await page.locator('#group-add').fill('ann@example.com');
  await inDialog('Add');
  await button(page, 'Remove member: ann@example.com').waitFor();
  await inspect(page, 'group-members-light');
  await inspectIn(page, 'group-members', 'phone');
  await button(page, 'Remove member: ann@example.com').press('Enter');
  await dialog().getByText('No members').waitFor();
  await dialog().getByRole('button', { name: 'Close', exact: true }).last().click();
  await inspect(page, 'groups-light');
  await button(page, 'Connect a directory').click();
  await inspect(page, 'group-directory-light');
  await inDialog('Create');
  await page.getByLabel('SCIM address').waitFor();
  await inspect(page, 'groups-directory-light');
  await page.getByRole('main').getByRole('button', { name: 'Close', exact: true }).click();
});

step('an app’s card leads to the form, with several networks and groups', async () => {
  await nav(page, 'Apps');
  await inspect(page, 'apps-light');
  await button(page, 'Create instance: Notebook').click();
  await heading(page, 'Create instance');
  await page.getByText('Ports: Web 8888').waitFor();
  await button(page, 'Advanced').click();
  await page.getByRole('group', { name: 'Networks' }).getByLabel('default').check();
  await page.getByRole('group', { name: 'Security groups' }).getByLabel('web').check();
  await page.locator('code').getByText('--security-group web').first().waitFor();
  await inspect(page, 'create-networks-light');
  await button(page, 'Cancel').click(); // by a link one would be asked
  await heading(page, 'Instances');
});

step('the own account: two-factor authentication', async () => {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Your account' }).click();
  await heading(page, 'Your account');
  assert.equal(await button(page, 'Turn off two-factor authentication').count(), 0);
  await button(page, 'Set up').click();
  await page.getByRole('img', { name: 'QR code of the secret' }).waitFor();
  const secret = await page.getByRole('textbox', { name: 'Secret' }).inputValue();
  await inspect(page, 'account-totp-light');
  expect('400');
  await page.locator('#acc-code').fill('000000');
  await button(page, 'Turn on').click();
  await page.locator('#acc-code-help .pf-m-error').waitFor();
  await page.locator('#acc-code').fill(totp(secret));
  await button(page, 'Turn on').click();
  await page.getByRole('list', { name: 'Recovery codes' }).waitFor();
  assert.equal(await page.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem').count(), 10);
  const recovery = await page.getByRole('list', { name: 'Recovery codes' }).getByRole('listitem').first().innerText();
  await inspect(page, 'account-recovery-light');
  await page.getByRole('main').getByRole('button', { name: 'Close' }).click();
  await page.reload(); // that they are on is the server's knowledge
  await button(page, 'Turn off two-factor authentication').waitFor();
  assert.equal(await button(page, 'Set up').count(), 0);
  await inspect(page, 'account-totp-on-light');
  await button(page, 'Turn off two-factor authentication').click();
  expect('403');
  await page.locator('#acc-off').fill('wrong');
  await page.locator('#acc-off-code').fill(recovery);
  await inDialog('Turn off');
  await page.locator('#acc-off-help .pf-m-error').waitFor();
  await page.locator('#acc-off').fill(PASSWORD);
  await inDialog('Turn off');
  await dialog().waitFor({ state: 'detached' });
  await button(page, 'Set up').waitFor();
});

step('sessions, and another password', async () => {
  const other = await open({});
  await other.goto(PORTAL);
  await signIn(other);
  await heading(other, 'Dashboard');
  await page.reload();
  await page.getByText('current', { exact: true }).waitFor();
  await page.getByRole('button', { name: /^Sign out: / }).click();
  tolerate('401'); // for whatever the other page asks for now
  await inDialog('Sign out');
  await page.getByRole('button', { name: /^Sign out: / }).waitFor({ state: 'detached' });
  await other.reload();
  await heading(other, 'Sign in');
  await other.context().close();
  tolerate();
  await page.locator('#acc-old').fill(PASSWORD);
  await page.locator('#acc-new').fill('short');
  expect('400');
  await button(page, 'Change password').click();
  await page.locator('#acc-new-help .pf-m-error').waitFor();
  await page.locator('#acc-new').fill(`${PASSWORD} again`);
  await button(page, 'Change password').click();
  await page.getByText('Password changed.').waitFor();
  await page.reload();
  await heading(page, 'Your account');
  await inspect(page, 'account-light');
});

/** Every page once more, as others see it. */
const looks = [
  ['volumes', 'Volumes', 'Volumes'],
  ['snapshots', 'Snapshots', 'Snapshots'],
  ['networks', 'Networks', 'Netzwerke'],
  ['security-groups', 'Security groups', 'Sicherheitsgruppen'],
  ['floating-ips', 'Floating IPs', 'Floating IPs'],
  ['load-balancers', 'Load balancers', 'Load Balancer'],
  ['apps', 'Apps', 'Apps'],
  ['projects', 'Projects', 'Projekte'],
  ['audit', 'Audit log', 'Audit-Log'],
  ['account', 'Your account', 'Ihr Konto'],
];

step('dark, on a phone, and in German', async () => {
  for (const [path, title] of looks) {
    await page.goto(`${PORTAL}/#/${path}`);
    await heading(page, title);
    await inspectIn(page, path, 'dark');
  }
  await speak(page, 'Deutsch');
  for (const [path, , titel] of looks) {
    await page.goto(`${PORTAL}/#/${path}`);
    await heading(page, titel);
    await inspectIn(page, path, 'phone');
  }
});

await run();
