// What a tenant needs beside the instance itself: volumes and snapshots,
// networks, the instance's history, the audit trail, the own account, projects,
// apps. Run by ../e2e_tenant_test.go.
import assert from 'node:assert/strict';
import { button, expect, heading, inspect, nav, open, PORTAL, run, signIn, step } from './harness.mjs';

const page = await open({});
page.setDefaultTimeout(20_000);
const dialog = () => page.getByRole('dialog');
const inDialog = (name) => dialog().getByRole('button', { name, exact: true }).click();
const row = (text) => page.getByRole('row').filter({ hasText: text });
const choose = async (of, action) => {
  await button(page, `Actions: ${of}`).click();
  await page.getByRole('menuitem', { name: action, exact: true }).click();
};
/** view of the instance’s page. */
const view = (name) => page.locator('.pf-v6-c-tabs').getByText(name, { exact: true }).click();
const remove = async (name) => {
  await choose(name, 'Delete');
  await page.getByLabel(`Type the name ${name} to confirm`).fill(name);
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
  expect('400');
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
  await dialog().getByLabel('Reads per second').fill('500');
  await dialog().getByRole('button', { name: 'The same without the portal' }).click();
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
  await choose('data', 'Grow');
  expect('400');
  await page.locator('#grow-size').fill('1');
  await inDialog('Grow');
  await page.locator('#grow-size-help .pf-m-error').getByText('cannot shrink').waitFor();
  await inspect(page, 'volume-grow-light');
  await page.locator('#grow-size').fill('3');
  await page.locator('#grow-size-help .pf-m-error').waitFor({ state: 'detached' });
  await inDialog('Grow');
  await row('data').getByText('3 GiB').waitFor();
  await choose('data', 'Limits');
  assert.equal(await dialog().getByLabel('Reads per second').inputValue(), '500');
  await dialog().getByLabel('Reads per second').fill('');
  await inDialog('Save');
  await dialog().waitFor({ state: 'detached' });
});

step('snapshots: of both disks; a clone; roll back', async () => {
  await choose('data', 'Take snapshot');
  await dialog().getByLabel('Name').fill('before');
  await inDialog('Take snapshot');
  await row('before').getByText('Ready').waitFor();
  await inspect(page, 'instance-storage-snapshot-light');
  await nav(page, 'Snapshots');
  await heading(page, 'Snapshots');
  await choose('before', 'Make a volume of it');
  await dialog().getByLabel('Name').fill('copy');
  await inDialog('Create');
  await choose('before', 'Roll back');
  expect('409');
  await inDialog('Roll back');
  await dialog().getByText('is open in an instance').waitFor();
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
  await row('data').getByText('no instance').waitFor();
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

step('a network, with its error at the field', async () => {
  await nav(page, 'Networks');
  await row('default').getByText('Ready').waitFor();
  await button(page, 'Create network').click();
  await page.locator('#net-name').fill('backend');
  await dialog().getByLabel('IPv4 addresses').fill('10.20.0.1/24');
  expect('400');
  await inDialog('Create');
  await page.locator('#net-cidr4-help .pf-m-error').waitFor();
  await inspect(page, 'network-create-light');
  await dialog().getByLabel('IPv4 addresses').fill('10.20.0.0/24');
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
  expect('400');
  await button(page, 'Save rules').click();
  await page.locator('#rule-1-ports-help .pf-m-error').waitFor();
  await inspect(page, 'security-group-light');
  await page.locator('#rule-1-ports').fill('443');
  await page.locator('#rule-1-ports-help .pf-m-error').waitFor({ state: 'detached' });
  await button(page, 'Save rules').click();
  await page.getByText('The rules are saved and hold from now on.').waitFor();
  await page.reload();
  assert.equal(await page.locator('#rule-1-ports').inputValue(), '443');
});

step('the instance’s network: groups, floating IP, trace', async () => {
  await page.goto(`${PORTAL}/#/instances`);
  await page.getByRole('link', { name: 'train-1' }).click();
  await view('Network');
  await page.getByText('Port in default').waitFor();
  await button(page, 'Trace').waitFor();
  await page.getByLabel('To', { exact: false }).last().fill('10.0.0.1');
  await button(page, 'Change security groups').click();
  await dialog().getByLabel('web').check();
  await inDialog('Save');
  await page.getByRole('main').getByRole('link', { name: 'web' }).waitFor();
  await button(page, 'Attach floating IP').click();
  await dialog().getByLabel('Name').fill('public');
  await inDialog('Allocate floating IP');
  await page.getByText('203.0.113.').waitFor();
  await page.locator('#trace-to').fill('203.0.113.77');
  await button(page, 'Trace').click();
  await page.getByText(/Yes: it arrives|No: it does not arrive/).waitFor();
  await inspect(page, 'instance-network-light');
  await nav(page, 'Floating IPs');
  await row('public').getByText('train-1').waitFor();
  await row('public').getByText('Ready').waitFor();
  await inspect(page, 'floating-ips-light');
  await choose('public', 'Take off');
  await inDialog('Take off');
  await row('public').getByText('nothing').waitFor();
});

step('a load balancer', async () => {
  await nav(page, 'Load balancers');
  await page.getByText('No load balancers yet').waitFor();
  await button(page, 'Create load balancer').first().click();
  await dialog().getByLabel('Name').fill('front');
  await button(page, 'Add backend').click();
  await dialog().getByLabel('Floating IP').selectOption('public');
  await inspect(page, 'load-balancer-create-light');
  await inDialog('Create');
  await row('front').getByText('Ready').waitFor();
  await row('front').getByText('203.0.113.').waitFor();
  await inspect(page, 'load-balancers-light');
});

/** Every page once more, as others see it. */
const looks = [
  ['volumes', 'Volumes', 'Volumes'],
  ['snapshots', 'Snapshots', 'Snapshots'],
  ['networks', 'Networks', 'Netze'],
  ['security-groups', 'Security groups', 'Sicherheitsgruppen'],
  ['floating-ips', 'Floating IPs', 'Floating IPs'],
  ['load-balancers', 'Load balancers', 'Lastverteiler'],
];

step('dark, on a phone, and in German', async () => {
  for (const [what, options] of [
    ['dark', { colorScheme: 'dark' }],
    ['phone', { viewport: { width: 390, height: 844 }, hasTouch: true }],
  ]) {
    const p = await open({ ...options, storageState: await page.context().storageState() });
    await p.goto(PORTAL);
    await heading(p, 'Dashboard');
    for (const [path, title] of looks) {
      await p.goto(`${PORTAL}/#/${path}`);
      await heading(p, title);
      await inspect(p, `${path}-${what}`);
    }
    await p.getByRole('button', { name: /^Account of/ }).click();
    await p.getByRole('menuitem', { name: 'Deutsch' }).click();
    for (const [path, , title] of looks) {
      await p.goto(`${PORTAL}/#/${path}`);
      await heading(p, title);
      if (what === 'phone') await inspect(p, `${path}-${what}-de`);
    }
    await p.context().close();
  }
});

await run(page);
