// The operator's business in the portal, on a cluster that nobody has used yet:
// the wizard, a customer with its prices, payments and suspension, revenue and
// branding. Run by ../e2e_money_test.go.
import assert from 'node:assert/strict';
import { deflateSync } from 'node:zlib';
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
  phone,
  PORTAL,
  run,
  signIn,
  speak,
  step,
} from './harness.mjs';

const page = await open({});
const main = page.getByRole('main');
const dialog = page.getByRole('dialog');

/** logo is a PNG of 64 by 64 pixels of one colour. */
const logo = (() => {
  const table = Array.from({ length: 256 }, (_, n) => {
    for (let k = 0; k < 8; k++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
    return n >>> 0;
  });
  const crc = (b) => (b.reduce((c, x) => table[(c ^ x) & 255] ^ (c >>> 8), 0xffffffff) ^ 0xffffffff) >>> 0;
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc(body));
    return Buffer.concat([length, body, sum]);
  };
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(64 * 3).map((_, i) => [0x7a, 0x1f, 0xa2][i % 3])]);
  const head = Buffer.from([0, 0, 0, 64, 0, 0, 0, 64, 8, 2, 0, 0, 0]);
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', head),
    chunk('IDAT', deflateSync(Buffer.concat(Array(64).fill(row)))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
})();

/** call the API as the operator's key. */
async function call(method, path, body) {
  const r = await fetch(PORTAL + path, {
    method,
    headers: { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  });
  assert.ok(r.ok, `${method} ${path}: ${r.status} ${await r.clone().text()}`);
  return r.json();
}

/** tab of an organization's page. */
const tab = (name) => main.getByRole('navigation').getByRole('link', { name, exact: true }).click();

step('sign in', async () => {
  await page.goto(PORTAL);
  await signIn(page);
});

step('a new cluster: the wizard opens by itself; the first step is oneself', async () => {
  await heading(page, 'Set up the cluster');
  await main.getByLabel('Current password').fill(PASSWORD);
  await main.locator('#acc-new').fill('short');
  expect('400');
  await button(page, 'Change password').click();
  await main.locator('#acc-new-help .pf-m-error').waitFor();
  await main.locator('#acc-new').fill(`${PASSWORD} 2`);
  await button(page, 'Change password').click();
  await main.getByText('Password changed.').waitFor();
  await inspect(page, 'setup-you-light');
  await button(page, 'Skip').click();
});

step('the wizard: the nodes are there, a network and an address are not', async () => {
  await main.getByText('Ready').first().waitFor();
  await inspect(page, 'setup-nodes-light');
  await button(page, 'Continue').click();
  await main.getByRole('button', { name: 'Add external network' }).waitFor();
  await inspect(page, 'setup-network-light');
  await button(page, 'Skip').click();
  await main.getByText('The portal has no address yet.').waitFor();
  await inspect(page, 'setup-address-light');
  await button(page, 'Skip').click();
});

step('the wizard: name, colour and logo', async () => {
  await main.getByLabel('Product name').fill('Nordlicht GPU');
  await main.locator('#brand-accent').fill('#ffcc00');
  await button(page, 'Save').click();
  await main.getByText('has a contrast ratio of 1.5').waitFor();
  await main.locator('#brand-accent').fill('#7a1fa2');
  await main.getByLabel('Support e-mail').fill('help@nordlicht.example');
  await button(page, 'Save').click();
  await page.getByRole('banner').getByText('Nordlicht GPU').waitFor();
  expect('400');
  await main.locator('#brand-logo').setInputFiles({
    name: 'logo.png',
    mimeType: 'image/png',
    buffer: Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
  });
  await main.getByText('is not a PNG image').waitFor();
  await main.locator('#brand-logo').setInputFiles({ name: 'logo.png', mimeType: 'image/png', buffer: logo });
  await main.getByRole('img', { name: 'Current logo' }).waitFor();
  assert.equal(
    await page.evaluate(() =>
      getComputedStyle(document.documentElement).getPropertyValue('--pf-t--global--color--brand--default').trim(),
    ),
    '#7a1fa2',
  );
  await inspect(page, 'setup-brand-light');
  await button(page, 'Continue').click();
});

step("the wizard: the example of prices becomes one's own", async () => {
  await main.getByText('The price book “default” still contains the example prices.').waitFor();
  await main.getByRole('group', { name: 'vCPU', exact: true }).getByLabel('Price (EUR)').fill('0.012');
  await button(page, 'Save prices').click();
  await main.getByText('Prices saved.').waitFor();
  await main.getByText(/^Version \d+ of this price book applies from/).waitFor();
  await inspect(page, 'setup-prices-light');
  await button(page, 'Continue').click();
});

step('the wizard: an image from a file', async () => {
  await main.getByRole('button', { name: 'Import debian-13' }).waitFor();
  await button(page, 'Import image').click();
  const disk = Buffer.alloc(1 << 20);
  disk.set([0x55, 0xaa], 510); // a boot sector
  await dialog
    .locator('input[type=file]')
    .setInputFiles({ name: 'Test Disk.raw', mimeType: 'application/octet-stream', buffer: disk });
  await page.waitForFunction(() => document.querySelector('#image-name')?.value === 'test-disk');
  await inspect(page, 'setup-images-light');
  await dialog.getByRole('button', { name: 'Import' }).click();
  await dialog.waitFor({ state: 'detached' });
  await main.getByRole('row').filter({ hasText: 'test-disk' }).getByText('Imported').waitFor();
  await button(page, 'Continue').click();
});

step('the wizard: sizes', async () => {
  await main.getByRole('button', { name: 'Create flavor' }).click();
  await dialog.locator('#flavor-name').fill('gpu-small');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await main.getByRole('gridcell', { name: 'gpu-small', exact: true }).waitFor();
  await inspect(page, 'setup-sizes-light');
});

step('the dashboard says what is missing', async () => {
  await nav(page, 'Dashboard');
  await page.getByText('5 of 10 steps completed').waitFor();
  await inspect(page, 'dashboard-setup-light');
});

step('no customer yet: the list says what to do', async () => {
  await nav(page, 'Organizations');
  await heading(page, 'Organizations');
  await page.getByText('No organizations yet').waitFor();
  await inspect(page, 'organizations-empty-light');
});

step('the wizard: the first customer, the first machine, and the end', async () => {
  await nav(page, 'Dashboard');
  await main.getByRole('link', { name: 'First customer' }).click();
  await main.locator('#customer-name').fill('alpha');
  await main.locator('#customer-email').fill('nobody');
  await button(page, 'Create customer').click();
  await main.locator('#customer-email-help').getByText('Enter an e-mail address').waitFor();
  await main.locator('#customer-email').fill('ada@alpha.example');
  await button(page, 'Create customer').click();
  assert.match(await page.getByRole('textbox', { name: 'Password link' }).inputValue(), /#\/password\?token=bslt_/);
  await inspect(page, 'setup-customer-light');
  await button(page, 'Continue').click();
  await main.getByRole('link', { name: 'Create your first instance' }).waitFor();
  await inspect(page, 'setup-machine-light');
  await button(page, 'Finish').click();
  await heading(page, 'Dashboard');
});

step('who is not signed in sees the name too', async () => {
  const p = await open({});
  await p.goto(PORTAL);
  await heading(p, 'Sign in');
  await p.getByText('Nordlicht GPU').waitFor();
  await p.getByRole('link', { name: 'help@nordlicht.example' }).waitFor();
  await inspect(p, 'sign-in-branded-light');
  await p.context().close();
});

step('a customer is made; what is wrong stands at its field', async () => {
  await nav(page, 'Organizations');
  await heading(page, 'Organizations');
  await main.getByRole('button', { name: 'Create organization' }).first().click();
  await dialog.locator('#org-name').fill('No Good');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await dialog.locator('#org-name-help').getByText('Enter up to 63 lowercase letters').waitFor();
  await dialog.locator('#org-name').fill('nova');
  await dialog.getByLabel('Display name').fill('Nova Robotics GmbH');
  await dialog.getByRole('button', { name: 'Equivalent CLI / API call' }).click();
  await dialog.getByText('basalt organization create nova').waitFor();
  await inspect(page, 'organization-create-light');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await heading(page, 'nova');
  await page.getByRole('status', { name: 'State' }).getByText('Active').waitFor();
  await inspect(page, 'organization-light');
});

step('its project and its first administrator', async () => {
  await tab('Projects');
  await main.getByRole('button', { name: 'Create project' }).click();
  await dialog.locator('#project-name').fill('vision');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await main.getByRole('gridcell', { name: 'vision', exact: true }).waitFor();
  await tab('Members');
  await main.getByRole('button', { name: 'Add administrator' }).click();
  await dialog.getByLabel('E-mail address').fill('eva@nova.example');
  await dialog.getByRole('button', { name: 'Add' }).click();
  assert.match(await page.getByRole('textbox', { name: 'Password link' }).inputValue(), /#\/password\?token=bslt_/);
  await inspect(page, 'organization-people-light');
});

step('a quota in GiB is kept in bytes', async () => {
  await tab('Quota');
  await main.getByLabel('Memory (GiB)').fill('lots');
  await button(page, 'Save').click();
  await main.getByText('Enter a number, or leave empty for no limit.').waitFor();
  await main.getByLabel('Memory (GiB)').fill('64');
  await main.getByLabel('vCPUs').fill('16');
  await inspect(page, 'organization-quota-light');
  await button(page, 'Save').click();
  await main.getByText('Quota saved.').waitFor();
  const o = await call('GET', '/v1/organizations/nova');
  assert.deepEqual(o.spec.quota, { memoryBytes: 64 * 2 ** 30, vcpus: 16 });
});

step('how it pays, and a payment that counts once', async () => {
  await button(page, 'Edit').click();
  await dialog.getByLabel('Billing').selectOption('prepaid');
  await dialog.getByLabel('Time zone').fill('Europe/Nowhere');
  expect('400');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.locator('#edit-zone-help').getByText('is not a valid time zone').waitFor();
  await dialog.getByLabel('Time zone').fill('Europe/Berlin');
  await dialog.getByLabel('Credit limit').fill('25');
  await dialog.getByLabel('Billing address').fill('Nova Robotics GmbH\nHafenstr. 1\n20457 Hamburg');
  await inspect(page, 'organization-edit-light');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await tab('Payments and invoices');
  await page.getByText('No payments yet').waitFor();
  await inspect(page, 'organization-money-empty-light');
  await main.getByRole('button', { name: 'Record payment' }).click();
  await dialog.getByLabel('Amount (EUR)').fill('250.50');
  await dialog.getByLabel('Reference').fill('bank-2026-0042');
  await inspect(page, 'payment-light');
  await dialog.getByRole('button', { name: 'Record' }).click();
  await main.getByRole('gridcell', { name: 'bank-2026-0042', exact: true }).waitFor();
  await main.getByText('€250.50').first().waitFor();
  const { items } = await call('GET', '/v1/payments?organization=nova');
  assert.equal(items[0].spec.amountMicros, 250_500_000);
  await inspect(page, 'organization-money-light');
});

step('a budget', async () => {
  await tab('Budgets');
  await page.getByText('No budgets').waitFor();
  await main.getByRole('button', { name: 'Create budget' }).click();
  await dialog.getByLabel('Monthly amount').fill('500');
  await dialog.getByLabel('When used up').selectOption('stop');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await main.getByRole('gridcell', { name: 'monthly', exact: true }).waitFor();
  await inspect(page, 'organization-budgets-light');
});

step('suspended, seen live elsewhere, and resumed', async () => {
  const other = await page.context().newPage();
  await other.goto(`${PORTAL}/#/organizations`);
  const row = other.getByRole('row').filter({ hasText: 'nova' });
  await row.getByText('Active').waitFor();
  await button(page, 'Suspend').click();
  await dialog.getByLabel('Reason').fill('unpaid since May');
  await dialog.getByRole('button', { name: 'Suspend' }).click();
  await page.getByRole('status', { name: 'State' }).getByText('Suspended').waitFor();
  await row.getByText('Suspended').waitFor();
  await row.getByText('unpaid since May').waitFor();
  await inspect(other, 'organizations-light');
  await button(page, 'Resume').click();
  await row.getByText('Active').waitFor();
  await other.close();
});

step('prices: in units of people, kept in base units', async () => {
  await nav(page, 'Prices');
  await heading(page, 'Price books');
  await inspect(page, 'prices-light');
  await main.getByRole('button', { name: 'Create price book' }).click();
  await dialog.locator('#book-name').fill('research');
  await dialog.getByRole('button', { name: 'Create' }).click();
  await heading(page, 'research');
  const row = (name) => main.getByRole('group', { name, exact: true });
  await row('GPU time').getByLabel('Price (EUR)').fill('2.4');
  await row('Memory').getByLabel('Price (EUR)').fill('free');
  await button(page, 'Save prices').click();
  await row('Memory').getByText('Enter a price, e.g. 0.01.').waitFor();
  await row('Memory').getByLabel('Price (EUR)').fill('0.0045');
  await main.getByRole('button', { name: 'Add tier to Outbound traffic' }).click();
  await row('Outbound traffic').getByLabel('First units, up to').last().fill('50'); // less than the tier before
  await row('Outbound traffic').getByLabel('Price per unit').last().fill('0.003');
  expect('400');
  await button(page, 'Save prices').click();
  await row('Outbound traffic').getByText('out of range').waitFor();
  await inspect(page, 'price-book-error-light');
  await row('Outbound traffic').getByLabel('First units, up to').last().fill('1000');
  await button(page, 'Save prices').click();
  await main.getByText('Prices saved.').waitFor();
  const versions = main.getByRole('grid', { name: 'Versions' });
  await versions.getByRole('gridcell', { name: '2', exact: true }).waitFor();
  await versions.getByRole('gridcell', { name: 'The beginning' }).waitFor();
  await versions.getByText('GPU time: 2.4').waitFor();
  const { spec } = await call('GET', '/v1/price-books/research');
  const price = (meter) => spec.prices.find((p) => p.meter === meter);
  assert.deepEqual(
    [price('gpu-nanoseconds').priceMicros, price('gpu-nanoseconds').per],
    [2_400_000, 3_600_000_000_000],
  );
  assert.deepEqual(
    [price('memory-byte-seconds').priceMicros, price('memory-byte-seconds').per],
    [4_500, 2 ** 30 * 3600],
  );
  assert.deepEqual(price('egress-bytes').tiers, [
    { upTo: 100, priceMicros: 0 },
    { upTo: 1000, priceMicros: 3_000 },
  ]);
});

step('what last month would have cost by them', async () => {
  await button(page, 'Calculate').click();
  await main.getByRole('gridcell', { name: 'nova', exact: true }).waitFor();
  await main.getByText('Total:').waitFor();
  await inspect(page, 'price-book-light');
});

step('the customer pays by them', async () => {
  await nav(page, 'Organizations');
  await main.getByRole('link', { name: 'nova' }).click();
  await heading(page, 'nova');
  await button(page, 'Edit').click();
  await dialog.getByLabel('Price book').selectOption({ label: 'research (EUR)' });
  await dialog.getByRole('button', { name: 'Save' }).click();
  await dialog.waitFor({ state: 'detached' });
  await main.getByText('research').first().waitFor();
});

step('revenue', async () => {
  await nav(page, 'Revenue');
  await heading(page, 'Revenue');
  await main.getByLabel('Group by', { exact: true }).selectOption('organization');
  await main.getByRole('link', { name: 'nova' }).waitFor(); // its payment
  await main.getByText('€250.50').first().waitFor();
  await inspect(page, 'revenue-light');
  await main.getByLabel('Period').selectOption({ index: 3 });
  await main.getByRole('link', { name: 'Usage (CSV)' }).waitFor();
});

step('a reseller is charged for what its customers use', async () => {
  await nav(page, 'Organizations');
  await main.getByRole('link', { name: 'nova' }).click();
  await heading(page, 'nova');
  await tab('Payments and invoices');
  await main.getByText('Not charged to this organization.').waitFor();
  await button(page, 'Charge customers’ usage').click();
  await dialog.getByText('From the next full hour, nova is invoiced').waitFor();
  await dialog.getByRole('button', { name: 'Charge customers’ usage' }).click();
  await main.getByText('Charged to this organization from').waitFor();
  await inspect(page, 'organization-wholesale-light');
  const { spec } = await call('GET', '/v1/organizations/nova');
  assert.equal(spec.billing.wholesale.length, 1);
});

step('the reseller: a price book of its own, and its first customer', async () => {
  const { link } = await call('POST', '/v1/users', {
    kind: 'User',
    meta: { name: 'sales@nova.example', organization: 'nova' },
    spec: { displayName: 'Sales', grants: [{ role: 'reseller', organization: 'nova' }] },
  });
  await call('POST', '/v1/password/link', { token: link.token, password: PASSWORD });
  const own = await open({});
  const mine = own.getByRole('main');
  const form = own.getByRole('dialog');
  await own.goto(PORTAL);
  await signIn(own, PASSWORD, 'sales@nova.example');
  await heading(own, 'Dashboard');
  await inspect(own, 'reseller-dashboard-light');
  await nav(own, 'Prices');
  await heading(own, 'Price books');
  await mine.getByRole('button', { name: 'Create price book' }).click();
  await form.locator('#book-name').fill('retail');
  await form.getByRole('button', { name: 'Create' }).click();
  await heading(own, 'retail');
  await mine.getByRole('group', { name: 'GPU time', exact: true }).getByLabel('Price (EUR)').fill('3');
  await button(own, 'Save prices').click();
  await mine.getByText('Prices saved.').waitFor();
  await nav(own, 'Prices');
  await mine.getByRole('link', { name: 'research' }).click(); // what it pays by itself
  await mine.getByText('This price book belongs to the operator.').waitFor();
  await mine.getByText('€2.40 per GPU-hour').waitFor();
  await inspect(own, 'reseller-wholesale-prices-light');
  await nav(own, 'Organizations');
  await mine.getByRole('button', { name: 'Create organization' }).first().click();
  await form.locator('#org-name').fill('first');
  await form.getByLabel('Price book').selectOption({ label: 'retail (EUR)' });
  await form.getByRole('button', { name: 'Create' }).click();
  await heading(own, 'first');
  await mine.getByText('retail').first().waitFor();
  await inspectIn(own, 'reseller-customer', 'phone');
  await nav(own, 'Branding');
  await heading(own, 'Branding');
  await mine.getByLabel('Product name').fill('Nova Cloud');
  await button(own, 'Save').click();
  await mine.getByText('Branding saved.').waitFor();
  await button(own, 'Request host name').click();
  await form.locator('#domain-name').fill('portal.nova.example');
  await form.getByRole('button', { name: 'Request host name' }).click();
  await mine.getByRole('gridcell', { name: 'portal.nova.example', exact: true }).waitFor();
  await inspect(own, 'reseller-branding-light');
  await own.context().close();
  const { spec } = await call('GET', '/v1/organizations/first?organization=nova');
  const { meta } = await call('GET', '/v1/price-books/retail');
  assert.equal(spec.priceBook, meta.id);
});

step('signing up is set up, with what is wrong at its field', async () => {
  await nav(page, 'Sign-up');
  await heading(page, 'Sign-up');
  await main.getByLabel('People can sign up').check();
  await main.getByText('Nobody can sign up, because the cluster does not send e-mail.').waitFor();
  await main.getByLabel('URL of the terms').fill('https://nordlicht.example/terms');
  await button(page, 'Save').click();
  await main.locator('#sus-termsVersion-help').getByText('Required.').waitFor();
  await main.getByLabel('Version of the terms').fill('2026-03');
  await main.getByLabel('Initial credit (EUR)').fill('10');
  await main.getByLabel('vCPUs').fill('8');
  await main.getByLabel('Provider').selectOption({ label: 'Cloudflare Turnstile' });
  await main.getByLabel('Site key').fill('0x4AAA');
  await main.locator('#sus-captchaSecret').fill('sesame');
  await button(page, 'Save').click();
  await main.getByText('Sign-up settings saved.').waitFor();
  await inspect(page, 'sign-up-settings-light');
  const s = await call('GET', '/v1/sign-up-settings');
  assert.deepEqual(
    [s.enabled, s.creditMicros, s.currency, s.quota, s.captcha, s.hasCaptchaSecret],
    [true, 10_000_000, 'EUR', { vcpus: 8 }, 'turnstile', true],
  );
});

step('a role that needs a second factor shows who would be asked', async () => {
  await nav(page, 'Security');
  await heading(page, 'Security');
  await main.getByLabel('Reseller').check();
  await main.getByRole('link', { name: 'Reseller: 1 user without a second factor' }).waitFor();
  await button(page, 'Save').click();
  await main.getByText('Security settings saved.').waitFor();
  await inspect(page, 'security-light');
  const { requireSecondFactor } = await call('GET', '/v1/security-settings');
  assert.deepEqual(requireSecondFactor, ['reseller']);
  await main.getByRole('link', { name: 'Reseller: 1 user without a second factor' }).click();
});

step('the access review shows what to check, and exports it', async () => {
  await heading(page, 'Access review');
  const rows = main.getByRole('grid', { name: 'Access review' }).getByRole('row');
  await rows.filter({ hasText: 'sales@nova.example' }).getByText('No second factor').waitFor();
  assert.equal(await rows.count(), 2); // with the head
  assert.equal(await main.getByText('Try again').count(), 0);
  await inspect(page, 'access-review-light');
  const download = page.waitForEvent('download');
  await main.getByRole('button', { name: 'Export' }).click();
  const file = await (await download).createReadStream();
  const text = Buffer.concat(await file.toArray()).toString();
  assert.match(text, /sales@nova\.example,User,nova,Reseller \(nova\),No second factor/);
  await main.getByLabel('To check').selectOption('');
  await main.getByLabel('Type').selectOption('');
  await main.getByLabel('Role').selectOption('');
  await rows.filter({ hasText: 'op@example.com' }).waitFor();
});

step('an identity provider: metadata from a file, what it must be told, and a test', async () => {
  await nav(page, 'Identity providers');
  await heading(page, 'Identity providers');
  await main.getByText('No identity providers').waitFor();
  await inspect(page, 'identity-providers-empty-light');
  await button(page, 'Add SAML provider').click();
  await heading(page, 'Add SAML provider');
  await button(page, 'Create').click();
  await page.locator('#idp-metadata-help .pf-m-error').waitFor();
  await inspect(page, 'identity-provider-wrong-light');
  await page.locator('#idp-name').fill('okta');
  await page.locator('[data-file=idp-metadata]').setInputFiles(process.env.IDP_METADATA);
  await page.locator('#idp-emailDomains').fill('Example.com');
  await page.locator('#idp-organization').selectOption({ label: 'nova' });
  await page.locator('#idp-create').check();
  await page.locator('#idp-groupsClaim').fill('groups');
  await button(page, 'Add role').click();
  await main.getByLabel('Value').fill('gpu');
  await main.getByLabel('Role', { exact: true }).selectOption('admin');
  await button(page, 'Equivalent CLI / API call').click();
  await main.getByText('basalt identity-provider create okta').waitFor();
  await inspect(page, 'identity-provider-create-light');
  await button(page, 'Create').click();
  await heading(page, 'okta');
  await main.getByRole('textbox', { name: /^Entity ID/ }).waitFor();
  const entity = await main.getByRole('textbox', { name: /^Entity ID/ }).inputValue();
  const metadata = await (await fetch(`${PORTAL}/v1/login/saml/okta/metadata`)).text();
  assert.ok(metadata.includes(`entityID="${entity}"`), `${entity} is not in ${metadata}`);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    main.getByRole('link', { name: 'Download service provider metadata' }).click(),
  ]);
  assert.equal(file.suggestedFilename(), 'okta-sp.xml');
  await inspect(page, 'identity-provider-connection-light');
  await main.getByRole('link', { name: 'Test sign-in' }).click();
  await button(page, 'Sign in at the provider').click();
  await main.getByText('The sign-in would create a user').waitFor();
  await main.getByText('ann@example.com').waitFor();
  await main.getByText('Administrator (nova)').waitFor();
  await inspect(page, 'identity-provider-test-light');
  const users = await call('GET', '/v1/users?name=ann@example.com');
  assert.equal(users.items.length, 0, 'a test has created a user');
});

step('its certificates are replaced one after the other', async () => {
  await main.getByRole('link', { name: 'Settings', exact: true }).click();
  await page.locator('[data-file=idp-certificate]').setInputFiles(process.env.IDP_NEXT);
  await button(page, 'Save').click();
  await main.getByText('Identity provider saved').waitFor();
  await main.getByText(/^Certificate 2: valid until /).waitFor();
  await inspect(page, 'identity-provider-light');
  await inspectIn(page, 'identity-provider', 'dark', 'phone');
  await button(page, 'Remove certificate 2').click();
  await button(page, 'Save').click();
  await main.getByText(/^Certificate 2: /).waitFor({ state: 'detached' });
  const { spec } = await call('GET', '/v1/identity-providers/okta');
  assert.equal(spec.saml.certificates.length, 1);
  assert.deepEqual(spec.saml.emailDomains, ['example.com']);
});

step('the sign-in page offers it; a provider by OpenID Connect', async () => {
  const own = await open({});
  await own.goto(PORTAL);
  await button(own, 'Sign in with okta').click();
  await heading(own, 'Dashboard');
  await own.context().close();
  await nav(page, 'Identity providers');
  await button(page, 'Add OpenID Connect provider').click();
  await heading(page, 'Add OpenID Connect provider');
  await page.locator('#idp-name').fill('keycloak');
  await page.locator('#idp-issuer').fill('https://id.example/realms/acme');
  await page.locator('#idp-clientId').fill('basalt');
  await page.locator('#idp-clientSecret').fill('secret');
  await inspect(page, 'identity-provider-oidc-light');
  await button(page, 'Create').click();
  await heading(page, 'keycloak');
  await inspect(page, 'identity-provider-oidc-connection-light');
  await main.getByRole('link', { name: 'Test sign-in' }).click();
  expect('503');
  await button(page, 'Sign in at the provider').click();
  await main.getByText('the identity provider is not reachable').waitFor();
  await nav(page, 'Identity providers');
  await main.getByRole('gridcell', { name: 'OpenID Connect' }).waitFor();
  await inspect(page, 'identity-providers-light');
  await inspectIn(page, 'identity-providers', 'dark', 'phone');
  await button(page, 'Actions: keycloak').click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await dialog.locator('#confirm-name').fill('keycloak');
  await page.keyboard.press('Enter');
  await main.getByRole('link', { name: 'keycloak' }).waitFor({ state: 'detached' });
});

step('taxes of the operator, and of a reseller', async () => {
  await nav(page, 'Taxes');
  await heading(page, 'Taxes');
  await main.getByLabel('Taxes of').selectOption({ label: 'nova' });
  await page.waitForURL(/tax-settings\/org-/);
  await page.locator('#tax-country').fill('fr');
  await button(page, 'Add rate').click();
  await main.getByLabel('Customer’s country').fill('FR');
  await main.getByLabel('Tax name', { exact: true }).fill('TVA');
  await main.getByLabel('Percentage (%)', { exact: true }).fill('20');
  await button(page, 'Save').click();
  await main.getByText('Tax settings saved.').waitFor();
  await button(page, 'Equivalent CLI / API call').click();
  await inspect(page, 'taxes-reseller-light');
  await inspectIn(page, 'taxes-reseller', 'dark', 'phone');
  const { country, rates } = await call('GET', '/v1/tax-settings?organization=nova');
  assert.deepEqual([country, rates[0].basisPoints], ['FR', 2000]);
  assert.equal((await call('GET', '/v1/tax-settings')).country ?? '', '');
});

step('what is used is not deleted', async () => {
  await nav(page, 'Organizations');
  await main.getByRole('link', { name: 'nova', exact: true }).click();
  await heading(page, 'nova');
  await button(page, 'Delete').click();
  await dialog.locator('#confirm-name').fill('nova');
  expect('409');
  await dialog.getByRole('button', { name: 'Delete' }).click();
  await dialog.getByRole('alert').or(dialog.locator('.pf-v6-c-alert')).first().waitFor();
  await inspect(page, 'organization-delete-light');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

step('dark, on a phone, and in German', async () => {
  const { meta } = await call('GET', '/v1/organizations/nova');
  const { meta: book } = await call('GET', '/v1/price-books/research');
  for (const [path, title, shot] of [
    ['/organizations', 'Organizations', 'organizations'],
    [`/organizations/${meta.id}`, 'nova', 'organization'],
    [`/organizations/${meta.id}/money`, 'nova', 'organization-money'],
    ['/revenue', 'Revenue', 'revenue'],
    [`/prices/${book.id}`, 'research', 'price-book'],
    ['/branding', 'Branding', 'branding'],
    ['/sign-up-settings', 'Sign-up', 'sign-up-settings'],
    ['/security', 'Security', 'security'],
    ['/access-review', 'Access review', 'access-review'],
    ['/setup/prices', 'Set up the cluster', 'setup-prices'],
    [`/organizations/${meta.id}/quota`, 'nova', 'organization-quota'],
  ]) {
    await page.goto(`${PORTAL}/#${path}`);
    await heading(page, title);
    await inspectIn(page, shot, 'dark', 'phone');
  }
  await speak(page, 'Deutsch');
  await page.getByText('Kontingent').first().waitFor();
  await page.setViewportSize(phone);
  await inspect(page, 'organization-quota-phone-de');
});

await run();
