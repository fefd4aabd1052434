// What a tenant does in the portal, in Chromium: signs in, creates an instance,
// sees it run, stop and go, live; makes an API key; everything by its accessible
// name. Every page is looked at by axe-core in light, dark and on a phone. It
// fails on any message in the browser's console and on any request to another
// host. Run by ../e2e_test.go, which starts basaltd.
import assert from 'node:assert/strict';
import {
  button,
  EMAIL,
  expect,
  heading,
  inspect,
  inspectIn,
  nav,
  open,
  OPERATOR,
  PASSWORD,
  patience,
  phone,
  PORTAL,
  run,
  settled,
  signIn,
  speak,
  step,
} from './harness.mjs';

const page = await open({});

// What is sent for one page with nothing in the cache: files of code and styles, and their bytes.
const mostCode = { files: 20, bytes: 350_000 };

// firstLoad opens a page with nothing in the cache: how many bytes of files are sent, fonts and all, how many of the
// files are code and styles, and when the page can be used.
async function firstLoad(p, title, { most = Infinity, address = '' }) {
  const sizes = {};
  p.on('response', (r) => {
    if (!r.url().includes('/v1/')) sizes[r.url().replace(PORTAL, '')] = Number(r.headers()['content-length']);
  });
  await p.goto(`${PORTAL}/${address}`);
  await heading(p, title);
  const ready = await p.evaluate(() => performance.now());
  await settled(p); // what it loads afterwards counts too
  const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
  const total = sum(Object.values(sizes));
  const code = Object.entries(sizes).filter(([name]) => /\.(js|css)$/.test(name));
  const bytes = sum(code.map(([, n]) => n));
  console.log(
    `${title}: ${total} bytes compressed, ${bytes} of them in ${code.length} files of code, ready after ${Math.round(ready)} ms`,
  );
  if (process.env.SIZES) for (const [name, n] of Object.entries(sizes)) console.log(`  ${n} ${name}`);
  assert.ok(total < most, `${title}: the first load is ${total} bytes`);
  assert.ok(code.length > 2, `${title}: the first load is ${code.length} files of code: not all were seen`);
  assert.ok(code.length <= mostCode.files, `${title}: the first load is ${code.length} files of code`);
  assert.ok(bytes <= mostCode.bytes, `${title}: the first load is ${bytes} bytes of code`);
}

step('first load', async () => {
  await firstLoad(page, 'Sign in', { most: 250_000 });
  await inspect(page, 'sign-in-light');
});

step('a wrong password says what to do', async () => {
  expect('401');
  await signIn(page, 'wrong');
  await page.getByText('wrong e-mail address or password').waitFor();
  await page.getByText('your administrator can reset the password').waitFor();
});

step('sign in', async () => {
  await signIn(page);
  await heading(page, 'Dashboard');
  await page.getByText('Month to date').waitFor();
  await page.getByRole('button', { name: 'Create your first instance' }).waitFor();
  await page.getByRole('link', { name: 'Add an SSH key' }).waitFor();
  assert.equal(
    await page.evaluate(() => document.cookie + JSON.stringify(sessionStorage)),
    '{}',
    'scripts can read the session',
  );
  await inspect(page, 'dashboard-empty-light');
});

step('first load of who is signed in', async () => {
  const p = await open({ storageState: await page.context().storageState() });
  await firstLoad(p, 'Dashboard', { most: 250_000 });
  await p.context().close();
  const other = await open({ storageState: await page.context().storageState() });
  await firstLoad(other, 'Create instance', { address: '#/instances/new' });
  await other.context().close();
});

step('the list is empty and says what to do', async () => {
  await page.getByRole('link', { name: 'Instances', exact: true }).click();
  await heading(page, 'Instances');
  await page.getByText('No instances yet').waitFor();
  await inspect(page, 'instances-empty-light');
});

const gib = 2 ** 30;

/** gpus adds to the offers of a cluster that has none those of two models. */
async function gpus(route) {
  // The portal's door answers its own pages only, and Chromium tells where a request is from.
  const answer = await route.fetch({ headers: { ...route.request().headers(), 'sec-fetch-site': 'same-origin' } });
  const list = await answer.json();
  const base = list.items[0];
  const of = (model, vram, hour, free) =>
    [100, 50, 25, 10].map((percent) => {
      const [reserved, rest] = [(hour * percent) / 100, (hour * (100 - percent)) / 100];
      const memory = vram * percent * 100;
      return {
        ...base,
        model,
        pool: 'default',
        gpuVramBytes: vram * gib,
        vramBytes: (vram * gib * percent) / 100,
        sharePercent: percent,
        tier: 'standard',
        reservedMicros: base.reservedMicros + memory + reserved,
        fullUseMicros: base.fullUseMicros + memory + hour,
        prices: [
          ...base.prices,
          { meter: 'vram-byte-seconds', reservedMicros: memory, fullUseMicros: memory },
          { meter: 'gpu-share-seconds', reservedMicros: reserved, fullUseMicros: reserved },
          { meter: 'gpu-nanoseconds', reservedMicros: 0, fullUseMicros: rest },
        ],
        free: Math.floor((free * 100) / percent),
      };
    });
  list.items.push(...of('NVIDIA H100', 80, 3_200_000, 0), ...of('NVIDIA L4', 24, 1_800_000, 3));
  await route.fulfill({ response: answer, json: list });
}

step('create: errors stand at their fields', async () => {
  await page.getByRole('main').getByRole('button', { name: 'Create instance' }).first().click();
  await heading(page, 'Create instance');
  await page.getByRole('rowheader', { name: 'Estimated total' }).waitFor(); // then an image and a name are chosen
  await page.getByLabel('Image or app').selectOption('');
  await page.getByLabel('Name').fill('');
  await button(page, 'Create').click();
  await page.getByText('Correct 2 fields').waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), 'new-image');
  assert.equal(await page.locator('.pf-v6-c-form .pf-m-error').getByText('Required.').count(), 2);
  await inspect(page, 'create-missing-light');
  await page.getByLabel('Name').fill('train-1');
  await page.getByLabel('Image or app').selectOption('image:debian-12');
  await page.getByLabel('Flavor').selectOption('tiny');
  await page.getByText('Correct').waitFor({ state: 'detached' });
  await page.getByRole('rowheader', { name: 'Estimated total' }).waitFor();
  await page.getByRole('radio', { name: 'No GPU' }).waitFor();
  await page.getByText('This cluster has no GPUs.').waitFor();
  await page.route('**/v1/offers?*', gpus);
  await page.reload();
  await page.getByRole('radio', { name: 'NVIDIA L4' }).check();
  await page.getByRole('radio', { name: '25% of a GPU' }).check();
  await page.getByRole('columnheader', { name: 'Reserved, GPU idle' }).waitFor();
  const time = page.getByRole('row').filter({ has: page.getByRole('rowheader', { name: 'GPU time' }) });
  await time.getByText('€0.45 / h').waitFor();
  await time.getByText('€1.80 / h').waitFor();
  await page.getByLabel('Image or app').selectOption('image:debian-12');
  await page.getByLabel('Name').fill('train-1');
  await inspect(page, 'create-light');
  await page.getByRole('radio', { name: 'No GPU' }).check();
  await page.getByLabel('Name').fill('No Good');
  await page.locator('#new-name-help').getByText('Enter up to 63 lowercase letters').waitFor(); // before the button is pressed
  await button(page, 'Create').click();
  await page.getByLabel('Name').fill('train-1');
  await button(page, 'Create').click();
  await page.getByText('Nobody can sign in to this instance').waitFor();
  await inspect(page, 'create-no-way-in-light');
  const name = page.getByLabel('Name');
  await name.fill('ins-0123456789ab');
  expect('400');
  await button(page, 'Create without access').click();
  await page.locator('#new-name-help').getByText('looks like an ID').waitFor(); // only the server knows
  assert.equal(await name.getAttribute('aria-invalid'), 'true');
  await name.fill('train-1');
  await page.locator('code').getByText('basalt instance create train-1').waitFor();
});

step('an app says what it is, and waits for its image', async () => {
  const source = page.getByLabel('Image or app');
  assert.equal(await source.locator('option[value="app:jupyter"]').isDisabled(), true);
  await source.selectOption('app:notebook');
  await page.getByText('Ports: Web 8888').waitFor();
  await page.getByText('Its token is in /etc/notebook.').waitFor();
  await page.locator('code').getByText('--app notebook').waitFor();
  await inspect(page, 'create-app-light');
});

step('create, and see it run without asking again', async () => {
  await button(page, 'Generate').click();
  await page.getByText('Nobody can sign in to this instance').waitFor({ state: 'detached' });
  await button(page, 'Create').click();
  await heading(page, 'train-1');
  await page.getByRole('status', { name: 'State' }).getByText('Running').waitFor();
  await inspect(page, 'instance-light');
});

step('another window sees it too, and what happens to it', async () => {
  const other = await page.context().newPage();
  other.setDefaultTimeout(patience);
  await other.goto(`${PORTAL}/#/instances`);
  const row = other.getByRole('row').filter({ hasText: 'train-1' });
  await row.getByText('Running').waitFor();
  await inspect(other, 'instances-light');
  await button(page, 'Stop').click();
  await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('status', { name: 'State' }).getByText('Stopped').waitFor();
  await row.getByText('Stopped').waitFor();
  await other.close();
});

step('start it again, by keyboard', async () => {
  await button(page, 'Start').focus();
  await page.keyboard.press('Enter');
  await page.getByRole('status', { name: 'State' }).getByText('Running').waitFor();
});

step('the filter takes a part of a name, and stands in the address', async () => {
  await nav(page, 'Instances');
  await page.getByRole('link', { name: 'train-1' }).waitFor();
  await page.keyboard.press('/');
  await page.keyboard.type('nothing');
  await page.getByText('No results for “nothing”').waitFor();
  const filter = page.getByRole('textbox', { name: 'Filter by name, ID or address' });
  await filter.fill('RAIN');
  await page.keyboard.press('Enter');
  await page.getByRole('link', { name: 'train-1' }).waitFor();
  assert.match(page.url(), /#\/instances\?search=RAIN$/);
  await page.reload();
  await page.getByRole('link', { name: 'train-1' }).waitFor();
  assert.equal(await filter.inputValue(), 'RAIN');
  await page.getByText('1 shown').waitFor();
});

step('usage, invoices, members', async () => {
  await nav(page, 'Usage');
  await heading(page, 'Usage');
  await page.getByText('vCPU').first().waitFor();
  await inspect(page, 'usage-light');
  await nav(page, 'Invoices');
  await page.getByText('No invoices yet').waitFor();
  await inspect(page, 'invoices-light');
  await nav(page, 'Members');
  await page.getByText(EMAIL).first().waitFor();
  await inspect(page, 'members-light');
});

step('a new member gets a link and sets a password', async () => {
  await button(page, 'Add member').click();
  await page.getByRole('dialog').getByLabel('E-mail address').fill('ben@example.com');
  await page.getByRole('dialog').getByRole('button', { name: 'Add' }).click();
  const link = await page.getByRole('textbox', { name: 'Password link' }).inputValue();
  await inspect(page, 'member-added-light');
  const ben = await open({});
  await ben.goto(link);
  await heading(ben, 'Set your password');
  expect('400');
  await ben.getByLabel('New password').fill('short');
  await button(ben, 'Set password').click();
  await ben.locator('#new-password-help').getByText(/./).waitFor();
  await inspect(ben, 'set-password-light');
  await ben.getByLabel('New password').fill(PASSWORD);
  await button(ben, 'Set password').click();
  await ben.getByText('Password of ben@example.com set.').waitFor();
  await button(ben, 'Sign in').click();
  await heading(ben, 'Sign in');
  await ben.getByLabel('E-mail address').fill('ben@example.com');
  await ben.getByLabel('Password').fill(PASSWORD);
  await ben.getByLabel('Organization').fill('acme'); // whose admin has made him
  await button(ben, 'Sign in').click();
  await heading(ben, 'Dashboard');
  // A member sees machines, and neither money nor members.
  const main = ben.getByRole('navigation', { name: 'Main' });
  for (const group of ['Storage', 'Network']) await main.getByRole('button', { name: group }).click();
  assert.deepEqual(await main.getByRole('link').allInnerTexts(), [
    'Dashboard',
    'Instances',
    'Apps',
    'Images',
    'Volumes',
    'Snapshots',
    'Networks',
    'Security groups',
    'Floating IPs',
    'Load balancers',
    'Usage',
  ]);
  await ben.context().close();
});

step('an API key is shown once', async () => {
  await nav(page, 'API keys');
  await heading(page, 'API keys');
  await page.getByRole('main').getByRole('button', { name: 'Create API key' }).first().click();
  await page.getByRole('dialog').getByLabel('Name').fill('ci');
  await inspect(page, 'key-dialog-light');
  await page.getByRole('dialog').getByRole('button', { name: 'Create' }).click();
  const secret = await page.getByRole('textbox', { name: 'Secret' }).inputValue();
  assert.match(secret, /^bslt_key-/);
  const answer = await fetch(`${PORTAL}/v1/whoami`, { headers: { Authorization: `Bearer ${secret}` } });
  assert.equal((await answer.json()).role, 'member');
  await inspect(page, 'keys-light');
  await page.getByRole('main').getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Delete: ci' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No API keys yet').waitFor();
  assert.equal((await fetch(`${PORTAL}/v1/whoami`, { headers: { Authorization: `Bearer ${secret}` } })).status, 401);
});

/** tour looks at pages, the last of them in German too; menu opens the menu where it is closed. */
async function tour(p, menu, look) {
  await p.goto(`${PORTAL}/#/`);
  await heading(p, 'Dashboard');
  await p.getByText('Month to date').waitFor();
  await look('dashboard');
  await menu();
  await nav(p, 'Instances');
  await p.getByRole('link', { name: 'train-1' }).waitFor();
  await look('instances');
  await p.getByRole('link', { name: 'train-1' }).click();
  await heading(p, 'train-1');
  await look('instance');
  await p.goto(`${PORTAL}/#/instances/new`);
  await heading(p, 'Create instance');
  await p.getByLabel('Flavor').selectOption('tiny');
  await p.getByRole('rowheader', { name: 'Estimated total' }).waitFor();
  await look('create');
  await p.goto(`${PORTAL}/#/usage`);
  await p.getByText('vCPU').first().waitFor();
  await look('usage');
  await speak(p, 'Deutsch');
  await heading(p, 'Verbrauch');
  await look('usage-de');
}

step('dark, and in German', async () => {
  await tour(
    page,
    () => undefined,
    (what) => inspectIn(page, what, 'dark'),
  );
  await speak(page, 'English');
  await heading(page, 'Usage');
});

step('on a phone, also dark, and in German', async () => {
  const p = await open({ viewport: phone, hasTouch: true, storageState: await page.context().storageState() });
  const menu = async () => {
    await button(p, 'Menu').click();
    await inspect(p, 'menu-phone');
  };
  await tour(p, menu, async (what) => {
    await inspect(p, `${what}-phone`);
    await inspectIn(p, what, 'phone-dark');
  });
  await p.context().close();
});

step('the theme can be chosen', async () => {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await inspect(page, 'user-menu-light');
  await page.getByRole('menuitem', { name: 'Dark' }).click();
  assert.ok(await page.evaluate(() => document.documentElement.classList.contains('pf-v6-theme-dark')));
});

step('delete it by its name', async () => {
  await page.goto(`${PORTAL}/#/instances`);
  await page.getByRole('link', { name: 'train-1' }).click();
  await button(page, 'Delete').click();
  const sure = page.getByRole('dialog').getByRole('button', { name: 'Delete' });
  assert.ok(await sure.isDisabled());
  await page.getByLabel('Type train-1 to confirm').fill('train-1');
  await inspect(page, 'delete-dark');
  await page.keyboard.press('Enter');
  await heading(page, 'Instance not found');
  await page.getByRole('link', { name: 'Back to instances' }).click();
  await page.getByText('No instances yet').waitFor();
});

step('sign out, and in again with a link', async () => {
  await page.getByRole('button', { name: /^Account of/ }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await heading(page, 'Sign in');
  await inspect(page, 'sign-in-dark'); // as was chosen
  const operator = {
    method: 'POST',
    headers: { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' },
  };
  const users = await (await fetch(`${PORTAL}/v1/users?name=${EMAIL}`, { headers: operator.headers })).json();
  const { token } = await (await fetch(`${PORTAL}/v1/users/${users.items[0].meta.id}/login-link`, operator)).json();
  await page.goto(`${PORTAL}/#/sso?token=${encodeURIComponent(token)}`);
  await heading(page, 'Dashboard');
  assert.ok(!page.url().includes(token), 'the token is in the address');
  // The link is good once.
  const again = await open({});
  expect('400');
  await again.goto(`${PORTAL}/#/sso?token=${encodeURIComponent(token)}`);
  await again.getByText('This sign-in link is not valid').waitFor();
  await again.getByRole('button', { name: 'Sign in another way' }).click();
  await heading(again, 'Sign in');
});

step('an operator sees nodes and cards', async () => {
  const p = await open({});
  await p.goto(PORTAL);
  await signIn(p, PASSWORD, 'op@example.com');
  await heading(p, 'Dashboard');
  await nav(p, 'Nodes and GPUs');
  await heading(p, 'Nodes and GPUs');
  await p.getByText('Ready', { exact: true }).waitFor();
  await p.getByText('No GPUs').waitFor();
  await inspect(p, 'nodes-light');
  await p.context().close();
});

await run();
