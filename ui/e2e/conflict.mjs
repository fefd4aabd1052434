// Two windows change the same object. The second sees what the first has saved,
// field by field, at once or, where no watch tells it, at its save; what only one
// of them has changed lands, and what both have is decided. Run by
// ../e2e_conflict_test.go.
import assert from 'node:assert/strict';
import { button, expect, heading, inspect, open, OPERATOR, PASSWORD, PORTAL, run, signIn, step } from './harness.mjs';

const headers = { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' };
const ask = async (path) => (await fetch(PORTAL + path, { headers })).json();

/** enter is a window of a browser of its own, signed in. */
async function enter(email, options) {
  const page = await open(options);
  await page.goto(PORTAL);
  await page.locator('input[type=email]').fill(email);
  await page.locator('input[type=password]').fill(PASSWORD);
  await page.locator('button[type=submit]').click();
  await page
    .getByRole('heading', { level: 1, name: 'Dashboard' })
    .or(page.getByRole('heading', { level: 1, name: 'Übersicht' }))
    .waitFor();
  return page;
}

const first = await open({});
let second, deaf;
const dialog = (page) => page.getByRole('dialog');
const send = (page, name = 'Save') => dialog(page).getByRole('button', { name, exact: true }).click();
const taken = (page) => page.getByRole('alert').filter({ hasText: 'changed other fields' });
const both = (page) => page.getByRole('alert').filter({ hasText: 'You both changed' });
const focused = (page) => page.evaluate(() => document.activeElement?.getAttribute('role'));
const at = (page, path, title) => page.goto(`${PORTAL}/#${path}`).then(() => heading(page, title));

step('two windows of operators, and one that no watch tells anything', async () => {
  await first.goto(PORTAL);
  await signIn(first, PASSWORD, 'op@example.com');
  await heading(first, 'Dashboard');
  second = await enter('op@example.com');
  deaf = await open({});
  await deaf.route('**/v1/watch?**', () => undefined); // no answer, ever
  await deaf.goto(PORTAL);
  await signIn(deaf, PASSWORD, 'op@example.com');
  await heading(deaf, 'Dashboard');
});

step('another field of the same flavor: both land', async () => {
  for (const page of [first, second]) {
    await at(page, '/images/flavors', 'Images and apps');
    await button(page, 'Edit: tiny').click();
  }
  await second.locator('#flavor-memory').fill('128');
  await first.locator('#flavor-vcpus').fill('2');
  await send(first);
  await dialog(first).waitFor({ state: 'detached' });
  await taken(second).getByText('vCPUs').waitFor();
  await taken(second).getByText('1 → 2').waitFor();
  assert.equal(await second.locator('#flavor-vcpus').inputValue(), '2');
  assert.equal(await second.locator('#flavor-memory').inputValue(), '128');
  await inspect(second, 'conflict-taken-light');
  await send(second);
  await dialog(second).waitFor({ state: 'detached' });
  const { spec } = await ask('/v1/flavors/tiny');
  assert.deepEqual([spec.vcpus, spec.memoryBytes], [2, 128 * 2 ** 20]);
});

step('the same field of a pool: nothing is sent before it is decided', async () => {
  for (const page of [first, second]) {
    await at(page, '/pools', 'GPU pools');
    await button(page, 'Edit: big').click();
  }
  await second.locator('#pool-most').fill('5');
  await first.locator('#pool-most').fill('3');
  await send(first);
  await both(second).getByText('3', { exact: true }).waitFor();
  assert.equal(await focused(second), null); // who types goes on typing
  await send(second);
  await second.waitForFunction(() => document.activeElement?.getAttribute('role') === 'alert');
  assert.equal((await ask('/v1/gpu-pools/big')).spec.maxVgpusPerGpu, 3);
  await inspect(second, 'conflict-both-light');
  await both(second)
    .getByRole('button', { name: /^Keep mine: / })
    .click();
  await both(second).waitFor({ state: 'detached' });
  await send(second);
  await dialog(second).waitFor({ state: 'detached' });
  assert.equal((await ask('/v1/gpu-pools/big')).spec.maxVgpusPerGpu, 5);
});

const row = (page, name) => page.getByRole('main').getByRole('group', { name, exact: true });

step('a price book: told at the save, and both land', async () => {
  const book = await ask('/v1/price-books/default');
  for (const page of [first, deaf]) await at(page, `/prices/${book.meta.id}`, 'default');
  await deaf.locator('#book-seller').fill('Second Window AG');
  await row(first, 'vCPU').getByLabel('Price (EUR)').fill('0.021');
  await button(first, 'Save prices').click();
  await first.getByText('Prices saved.').waitFor();
  expect('412');
  await button(deaf, 'Save prices').click();
  await taken(deaf).getByText('0.021').waitFor();
  assert.equal(await focused(deaf), 'alert');
  assert.equal(await row(deaf, 'vCPU').getByLabel('Price (EUR)').inputValue(), '0.021');
  assert.equal(await deaf.locator('#book-seller').inputValue(), 'Second Window AG');
  await inspect(deaf, 'conflict-book-light');
  await button(deaf, 'Save prices').click();
  await deaf.getByText('Prices saved.').waitFor();
  const { spec } = await ask('/v1/price-books/default');
  assert.equal(spec.seller.name, 'Second Window AG');
  assert.equal(spec.prices.find((p) => p.meter === 'vcpu-seconds').priceMicros, 21_000);
});

step('the same price: theirs is taken, and one’s other row lands', async () => {
  await first.getByText('changed other fields').waitFor(); // the seller has come here too
  await row(deaf, 'vCPU').getByLabel('Price (EUR)').fill('0.03');
  await row(deaf, 'GPU time').getByLabel('Price (EUR)').fill('2.5');
  await row(first, 'vCPU').getByLabel('Price (EUR)').fill('0.04');
  await button(first, 'Save prices').click();
  await first.getByText('Prices saved.').waitFor();
  expect('412');
  await button(deaf, 'Save prices').click();
  await both(deaf).getByText('0.03').waitFor();
  await inspect(deaf, 'conflict-price-light');
  await both(deaf)
    .getByRole('button', { name: /^Use theirs: / })
    .click();
  assert.equal(await row(deaf, 'vCPU').getByLabel('Price (EUR)').inputValue(), '0.04');
  await button(deaf, 'Save prices').click();
  await deaf.getByText('Prices saved.').waitFor();
  const { spec } = await ask('/v1/price-books/default');
  const price = (meter) => spec.prices.find((p) => p.meter === meter).priceMicros;
  assert.deepEqual([price('vcpu-seconds'), price('gpu-nanoseconds')], [40_000, 2_500_000]);
});

step('a quota: both land', async () => {
  const { meta } = await ask('/v1/organizations/acme');
  for (const page of [first, second]) {
    await at(page, `/organizations/${meta.id}/quota`, 'acme');
    await page.locator('#quota-vcpus').waitFor();
  }
  await second.locator('#quota-instances').fill('50');
  await first.locator('#quota-vcpus').fill('20');
  await button(first, 'Save').click();
  await first.getByText('Quota saved.').waitFor();
  await taken(second).getByText('vCPUs').waitFor();
  await button(second, 'Save').click();
  await second.getByText('Quota saved.').waitFor();
  const { spec } = await ask('/v1/organizations/acme');
  assert.deepEqual(spec.quota, { vcpus: 20, instances: 50 });
});

step('what is deleted while it is edited', async () => {
  await at(second, '/pools', 'GPU pools');
  await button(second, 'Edit: big').click();
  await second.locator('#pool-most').fill('7');
  await fetch(`${PORTAL}/v1/gpu-pools/big`, { method: 'DELETE', headers });
  await second.getByText('Someone else deleted this').waitFor();
  assert.equal(await dialog(second).getByRole('button', { name: 'Save', exact: true }).isDisabled(), true);
  assert.equal(await second.locator('#pool-most').inputValue(), '7');
  await inspect(second, 'conflict-gone-light');
  await send(second, 'Cancel');
});

const ports = async () =>
  (await ask('/v1/security-groups/web?project=render')).spec.rules.map((r) => r.ports ?? r.protocol);

step('the rules of a security group, by a tenant: each adds one', async () => {
  const { meta } = await ask('/v1/security-groups/web?project=render');
  const ann = await enter('ann@example.com');
  const ben = await enter('ann@example.com', {
    locale: 'de-DE',
    viewport: { width: 390, height: 844 },
    hasTouch: true,
    colorScheme: 'dark',
  });
  for (const page of [ann, ben]) await at(page, `/security-groups/${meta.id}`, 'web');
  await button(ben, 'Regel hinzufügen').click();
  await ben.locator('#rule-2-ports').fill('443');
  await button(ann, 'Add rule').click();
  await ann.locator('#rule-2-ports').fill('8080');
  await button(ann, 'Save rules').click();
  await ann.getByText('Rules saved.').waitFor();
  await ben.getByRole('alert').filter({ hasText: 'hat andere Felder geändert' }).getByText('tcp 8080').waitFor();
  await inspect(ben, 'conflict-rules-de');
  await button(ben, 'Regeln speichern').click();
  await ben.getByText('Regeln gespeichert.').waitFor();
  assert.deepEqual(await ports(), ['22', 'any', '8080', '443']);
  // The same rule.
  await ann.locator('#rule-3-ports').waitFor();
  await ben.locator('#rule-0-ports').fill('2200-2201');
  await ann.locator('#rule-0-ports').fill('2222');
  await button(ann, 'Save rules').click();
  await ann.getByText('Rules saved.').waitFor();
  const choice = ben.getByRole('alert').filter({ hasText: 'Die folgenden Felder wurden von beiden geändert' });
  await choice.getByText('tcp 2222').waitFor();
  await choice.getByText('tcp 2200-2201').waitFor();
  await inspect(ben, 'conflict-rule-de');
  await choice.getByRole('button', { name: /^Meine behalten: / }).click();
  await button(ben, 'Regeln speichern').click();
  await choice.waitFor({ state: 'detached' });
  await ann.locator('#rule-0-ports[value="2200-2201"]').waitFor();
  assert.deepEqual(await ports(), ['2200-2201', 'any', '8080', '443']);
});

await run();
