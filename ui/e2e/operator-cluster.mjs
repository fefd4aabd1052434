// The operator's technical side: pools, images, apps and flavors, everybody's
// instances, maintenance, storage, ways outside, and alerts. With a card made of
// the processors, whose instance cannot start (there is no worker): an alert.
import assert from 'node:assert/strict';
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
} from './harness.mjs';

const page = await open({});
const dialog = page.getByRole('dialog');
const send = (name) => dialog.getByRole('button', { name, exact: true }).click();

step('sign in: the dashboard and the bell', async () => {
  await page.goto(PORTAL);
  await signIn(page, PASSWORD, 'op@example.com');
  await heading(page, 'Dashboard');
  await page.getByRole('heading', { name: 'Alerts', exact: true }).waitFor();
  await page.getByRole('button', { name: /^Alerts: / }).waitFor();
  await page.getByRole('link', { name: /: Allocated 50%, vGPUs: 1$/ }).waitFor();
  await button(page, 'Utilization').click();
  await page.getByRole('link', { name: /: Utilization 0%, vGPUs: 1$/ }).waitFor();
  await page.getByText(/4 GiB of VRAM free, 0 of 1 GPUs unused; 100% of the free VRAM is on GPUs in use\.$/).waitFor();
  await inspect(page, 'cluster-dashboard-light');
});

step('GPU pools: what the card has and has promised', async () => {
  await nav(page, 'GPU pools');
  await heading(page, 'GPU pools');
  await page.getByText('50% of VRAM, 50% of GPU time').waitFor();
  await page.getByText(/^4 GiB with 50% GPU time, on /).waitFor();
  await inspect(page, 'pools-light');
});

step('a pool: errors at fields, made, a card put into it, and back', async () => {
  await button(page, 'Create GPU pool').click();
  await dialog.getByLabel(/^Name/).fill('No Good');
  await send('Create');
  await page.locator('#pool-name-help').getByText('Enter up to 63 lowercase letters').waitFor();
  await dialog.getByLabel(/^Name/).fill('big');
  await dialog.getByLabel('Max. vGPUs per GPU').fill('2');
  await button(page, 'Equivalent CLI / API call').click();
  await dialog.getByText('basalt gpu-pool create big').waitFor();
  await inspect(page, 'pool-form-light');
  await send('Create');
  await page.getByRole('heading', { name: 'big' }).waitFor();
  await page.getByText('No GPUs in this pool.').waitFor();
  const change = page.getByRole('grid').getByRole('button', { name: /^Edit: / });
  for (const pool of ['big', 'default']) {
    await change.click();
    await dialog.getByLabel('GPU pool').selectOption(pool);
    await send('Save');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('grid', { name: `GPUs in ${pool}` }).waitFor();
  }
  await button(page, 'Edit: default').click();
  await dialog.getByLabel('VRAM overcommit').fill('401');
  await send('Save');
  await page.locator('#pool-overcommit-help').getByText('400').waitFor();
  await dialog.getByLabel('VRAM overcommit').fill('150');
  await send('Save');
  await dialog.waitFor({ state: 'detached' });
  await page.getByText(/^150% of 8 GiB$/).waitFor();
  await page.getByText(/^8 GiB with 50% GPU time, on /).waitFor();
  await inspect(page, 'pools-overcommit-light');
  await button(page, 'Edit: default').click();
  await dialog.getByLabel('VRAM overcommit').fill('100');
  await send('Save');
  await dialog.waitFor({ state: 'detached' });
  await button(page, 'Delete: big').click();
  await dialog.getByLabel('Type big to confirm').fill('big');
  await send('Delete');
  await page.getByRole('heading', { name: 'big' }).waitFor({ state: 'detached' });
});

step('an image from a file, with progress', async () => {
  await nav(page, 'Images');
  await heading(page, 'Images and apps');
  await page.getByRole('gridcell', { name: 'debian-12', exact: true }).waitFor();
  await inspect(page, 'images-light');
  await button(page, 'Import image').click();
  await page.locator('input[type=file]').setInputFiles(process.env.IMAGE);
  await page.waitForFunction(() => document.querySelector('#image-name')?.value === 'my-disk');
  assert.equal(await dialog.getByLabel('Format').inputValue(), 'raw');
  await inspect(page, 'image-form-light');
  await send('Import');
  await dialog.waitFor({ state: 'detached' });
  const row = page.getByRole('row').filter({ hasText: 'my-disk' });
  await row.getByText('Ready', { exact: true }).waitFor();
});

step('one that is stopped, and one whose sum is wrong, leave nothing behind', async () => {
  let stopped = true;
  await page.route('**/content', (r) => (stopped ? undefined : r.continue())); // held: it is on its way for ever
  await button(page, 'Import image').click();
  await page.locator('input[type=file]').setInputFiles(process.env.IMAGE);
  await dialog.getByLabel(/^Name/).fill('halfway');
  await send('Import');
  await page.getByRole('row', { includeHidden: true }).filter({ hasText: 'halfway' }).waitFor({ state: 'attached' });
  await inspect(page, 'image-sending-light');
  await send('Cancel');
  await page.getByRole('row', { includeHidden: true }).filter({ hasText: 'halfway' }).waitFor({ state: 'detached' });
  stopped = false;
  await dialog.getByLabel(/^Name/).fill('wrong');
  await dialog.getByLabel('SHA-256').fill('0'.repeat(64));
  expect('400');
  await send('Import');
  await dialog.locator('#image-sum-help .pf-m-error').filter({ hasText: 'SHA-256' }).waitFor();
  await send('Cancel');
  await page.getByRole('row', { includeHidden: true }).filter({ hasText: 'wrong' }).waitFor({ state: 'detached' });
  await button(page, 'Delete: my-disk').click();
  await dialog.getByLabel('Type my-disk to confirm').fill('my-disk');
  await send('Delete');
  await page.getByRole('row', { includeHidden: true }).filter({ hasText: 'my-disk' }).waitFor({ state: 'detached' });
});

step('apps and flavors', async () => {
  await page
    .getByRole('navigation', { name: /^Views/ })
    .getByRole('link', { name: 'Apps', exact: true })
    .click();
  await page.getByText('basalt app install', { exact: true }).waitFor();
  await inspect(page, 'apps-light');
  await button(page, 'Edit: notebook').click();
  await dialog.getByLabel('Version').fill('2');
  await send('Save');
  await page.getByText('notebook · 2').waitFor();
  await page
    .getByRole('navigation', { name: /^Views/ })
    .getByRole('link', { name: 'Flavors', exact: true })
    .click();
  await button(page, 'Create flavor').click();
  await dialog.getByLabel(/^Name/).fill('whale');
  await dialog.locator('#flavor-memory').fill('8');
  await dialog.getByLabel('Unit of Memory').selectOption('MiB');
  await send('Create');
  await page.locator('#flavor-memory-help .pf-m-error').waitFor();
  await dialog.getByLabel('Unit of Memory').selectOption('GiB');
  await inspect(page, 'flavor-form-light');
  await send('Create');
  await page.getByRole('gridcell', { name: 'whale', exact: true }).waitFor();
  await inspect(page, 'flavors-light');
  await button(page, 'Delete: whale').click();
  await dialog.getByLabel('Type whale to confirm').fill('whale');
  await send('Delete');
  await page.getByRole('gridcell', { name: 'whale', exact: true }).waitFor({ state: 'detached' });
});

step('all instances: filters on the server, stop and start', async () => {
  await nav(page, 'All instances');
  await heading(page, 'All instances');
  const row = page.getByRole('row').filter({ hasText: 'web-1' });
  await row.getByText('Running').waitFor();
  await row.getByText('acme / render').waitFor();
  await inspect(page, 'all-instances-light');
  await page.getByLabel('GPU').selectOption({ index: 1 });
  await row.waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'train-1' }).waitFor();
  await page.getByLabel('GPU').selectOption('');
  await page.getByLabel('State').selectOption('Stopped');
  await page.getByText('No matches').waitFor();
  await page.getByLabel('State').selectOption('');
  const choose = async (action) => {
    await button(page, 'Actions: web-1').click();
    await page.getByRole('menuitem', { name: action, exact: true }).click();
  };
  await choose('Migrate');
  await page.getByText('No other node is available.').waitFor();
  await inspect(page, 'move-light');
  await send('Cancel');
  await choose('Stop');
  await send('Stop');
  await row.getByText('Stopped').waitFor();
  await choose('Start');
  await send('Start');
  await row.getByText('Running').waitFor();
});

step('maintenance: a node closed and opened, no moves, no tokens on a node that is alone', async () => {
  await nav(page, 'Maintenance');
  await heading(page, 'Maintenance');
  await page.getByRole('button', { name: /^Cordon: / }).click();
  await send('Cordon');
  await page.getByText('Cordoned').waitFor();
  await inspect(page, 'maintenance-light');
  await page.getByRole('button', { name: /^Uncordon: / }).click();
  await send('Uncordon');
  await page.getByText('Cordoned').waitFor({ state: 'detached' });
  await page
    .getByRole('navigation', { name: /^Views/ })
    .getByRole('link', { name: 'Migrations', exact: true })
    .click();
  await page.getByText('No migrations').waitFor();
  await inspect(page, 'migrations-light');
  await page
    .getByRole('navigation', { name: /^Views/ })
    .getByRole('link', { name: 'Add node', exact: true })
    .click();
  expect('409');
  await button(page, 'Create join token').click();
  await page.getByText('this node is not part of a cluster').waitFor();
  await inspect(page, 'tokens-light');
});

step('storage: Ceph, disks, backup targets', async () => {
  await nav(page, 'Storage');
  await heading(page, 'Storage');
  await page.getByText('Ceph is not enabled').waitFor();
  await inspect(page, 'storage-light');
  await page
    .getByRole('navigation', { name: /^Views/ })
    .getByRole('link', { name: 'Backups', exact: true })
    .click();
  await button(page, 'Add backup target').click();
  await dialog.getByLabel(/^Name/).fill('nas');
  await dialog.getByRole('textbox', { name: 'Directory' }).fill('relative');
  expect('400');
  await send('Create');
  await page.locator('#target-directory-help').getByText('absolute').waitFor();
  await dialog.getByRole('textbox', { name: 'Directory' }).fill(process.env.TARGET);
  await inspect(page, 'target-form-light');
  await send('Create');
  await page.getByRole('gridcell', { name: 'nas', exact: true }).waitFor();
  await inspect(page, 'backups-light');
});

step('ways outside', async () => {
  await nav(page, 'External networks');
  await heading(page, 'External networks');
  await page.getByText('Not configured').waitFor();
  await inspect(page, 'network-health-light');
  await button(page, 'Add external network').click();
  await dialog.getByLabel(/^Name/).fill('isp');
  await dialog.getByLabel('IPv4 network').fill('nonsense');
  await inspect(page, 'external-form-light');
  expect('503'); // this basaltd has no networks
  await send('Create');
  await dialog.locator('.pf-v6-c-alert').waitFor();
  await send('Cancel');
});

step('alerts: what is wrong, and where', async () => {
  await page.getByRole('button', { name: /^Alerts: / }).click();
  await heading(page, 'Alerts');
  await inspect(page, 'alerts-light');
});

const pages = [
  ['pools', 'GPU pools', 'GPU-Pools'],
  ['images', 'Images and apps', 'Images und Apps'],
  ['all-instances', 'All instances', 'Alle Instanzen'],
  ['maintenance', 'Maintenance', 'Wartung'],
  ['storage', 'Storage', 'Speicher'],
  ['network-health', 'External networks', 'Externe Netzwerke'],
  ['alerts', 'Alerts', 'Warnungen'],
  ['webhooks', 'Webhooks', 'Webhooks'],
];

step('webhooks: who is told, and whether he takes it', async () => {
  const key = { method: 'POST', headers: { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' } };
  const organizations = await (await fetch(`${PORTAL}/v1/organizations`, { headers: key.headers })).json();
  const made = await fetch(`${PORTAL}/v1/webhooks`, {
    ...key,
    body: JSON.stringify({
      kind: 'Webhook',
      meta: { name: 'billing', organization: organizations.items[0].meta.id },
      spec: { url: 'https://basalt.invalid/hook' },
    }),
  });
  assert.equal(made.status, 201);
  await nav(page, 'Webhooks');
  await heading(page, 'Webhooks');
  await page.getByRole('link', { name: 'billing', exact: true }).click();
  await heading(page, 'billing');
  await button(page, 'Send test event').click();
  await page.getByText('webhook.test').first().waitFor({ timeout: 30_000 });
  await page.getByText(/^\d+ failed attempts$/).waitFor({ timeout: 60_000 });
  await inspect(page, 'webhook-light');
  await page.getByRole('link', { name: 'Webhooks', exact: true }).last().click();
  await page.getByText(/^\d+ failed attempts$/).waitFor();
  await inspect(page, 'webhooks-light');
  await page.goto(`${PORTAL}/#/alerts`); // after the third time
  await page.getByRole('link', { name: 'View billing' }).click({ timeout: 120_000 });
  await heading(page, 'billing');
});

step('dark, on a phone, and in German', async () => {
  for (const [path, title] of pages) {
    await page.goto(`${PORTAL}/#/${path}`);
    await heading(page, title);
    await inspectIn(page, path, 'dark', 'phone');
  }
  await speak(page, 'Deutsch');
  for (const [path, , titel] of pages) {
    await page.goto(`${PORTAL}/#/${path}`);
    await heading(page, titel);
    await inspect(page, `${path}-de`, 'structure'); // the colours are the English page's
  }
});

await run();
