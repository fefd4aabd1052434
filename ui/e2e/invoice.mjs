// The invoice of a month that is over, by its customer and by the operator: its
// lines, the hours of one, the minutes of an hour. LAST_MONTH is its first day.
// Run by ../e2e_invoice_test.go.
import assert from 'node:assert/strict';
import {
  button,
  expect,
  heading,
  inspect,
  inspectIn,
  nav,
  open,
  PASSWORD,
  PORTAL,
  run,
  signIn,
  step,
} from './harness.mjs';

const { LAST_MONTH } = process.env;
const page = await open();
const main = page.getByRole('main');
const dialog = page.getByRole('dialog');
const day = (n) =>
  new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' }).format(
    new Date(Date.parse(LAST_MONTH) + (n - 1) * 86_400_000),
  );

step('the invoice is there', async () => {
  await page.goto(PORTAL);
  await signIn(page, PASSWORD);
  await heading(page, 'Dashboard');
  await nav(page, 'Invoices');
  await heading(page, 'Invoices');
  await main.getByRole('gridcell', { name: new RegExp(`^${day(1)} – `) }).waitFor();
  await inspect(page, 'invoices-light');
});

step('its lines', async () => {
  await main.getByRole('link', { name: /\d/ }).first().click();
  await heading(page, /^Invoice /);
  const row = (what) => main.getByRole('row').filter({ hasText: what });
  await row('vCPU').getByRole('gridcell', { name: '3 vCPU h', exact: true }).waitFor();
  await row('GPU time').getByRole('gridcell', { name: '0.75 GPU h', exact: true }).waitFor();
  assert.equal(await row('train').count(), 2);
  await main.getByText('Acme Ltd').waitFor();
  await inspect(page, 'invoice-light');
  const [pdf] = await Promise.all([page.waitForEvent('download'), main.getByRole('link', { name: 'PDF' }).click()]);
  assert.match(pdf.suggestedFilename(), /\.pdf$/);
});

step('a line, down to the minute', async () => {
  await main.getByRole('link', { name: 'View breakdown: GPU time, train' }).click();
  await heading(page, 'GPU time, train');
  const hours = main.getByRole('grid', { name: 'Hours' });
  await hours.getByRole('gridcell', { name: `${day(2)}, 10:00 AM UTC`, exact: true }).waitFor();
  await hours.getByRole('gridcell', { name: '0.25 GPU h', exact: true }).waitFor();
  await main.getByRole('button', { name: `Show usage records for the hour starting ${day(2)}, 11:00 AM UTC` }).click();
  const records = main.getByRole('grid', { name: /^Usage records for the hour/ });
  await records
    .getByRole('gridcell', { name: `${day(2)}, 11:28:00 AM UTC` })
    .first()
    .waitFor();
  assert.equal(await records.getByRole('gridcell', { name: '0.008333 GPU h', exact: true }).count(), 30);
  await inspect(page, 'invoice-line-light');
});

step('one can come back to it, and to nothing that is not there', async () => {
  const address = page.url();
  await page.goto('about:blank');
  await page.goto(address);
  await heading(page, 'GPU time, train');
  await page.getByRole('link', { name: /^Invoice / }).click();
  await heading(page, /^Invoice /);
  expect('404');
  await page.goto(`${PORTAL}/#/invoices/inv-0123456789ab`);
  await heading(page, 'Invoice not found');
});

step('this month so far', async () => {
  await nav(page, 'Invoices');
  await main.getByRole('link', { name: 'Month to date' }).click();
  await heading(page, 'Month to date');
  await main.getByText('No usage this month').waitFor();
  await inspect(page, 'invoice-now-light');
});

step('what it costs, by meter and by resource, and on which day', async () => {
  await nav(page, 'Costs');
  await heading(page, 'Costs');
  await main.getByText('No usage this month').waitFor();
  await page.locator('#cost-month').selectOption(LAST_MONTH.slice(0, 7));
  await page.locator('#cost-by').selectOption('meter');
  const row = (what) => main.getByRole('row').filter({ hasText: what });
  await row('GPU time').getByRole('gridcell', { name: '€1.35', exact: true }).waitFor();
  await row('vCPU').getByRole('gridcell', { name: '€0.03', exact: true }).waitFor();
  const days = main.getByRole('slider', { name: /^Costs by day/ });
  await days.focus();
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  assert.match(await days.getAttribute('aria-valuetext'), /^\w+ 2: €1\.38, GPU time €1\.35, vCPU €0\.03$/);
  await inspect(page, 'costs-light');
  await page.locator('#cost-by').selectOption('resource');
  await row('train').getByRole('gridcell', { name: '€1.38', exact: true }).waitFor();
  await inspectIn(page, 'costs', 'dark', 'phone');
});

step('dark, and on a phone', async () => {
  await nav(page, 'Invoices');
  await main.getByRole('link', { name: /\d/ }).first().click();
  await heading(page, /^Invoice /);
  await inspectIn(page, 'invoice', 'dark', 'phone');
});

step('what the bank took back of a payment', async () => {
  await nav(page, 'Invoices');
  const payments = main.getByRole('grid', { name: 'Payments' });
  const paid = payments.getByRole('row').filter({ hasText: 'pi_story' });
  await paid.getByRole('gridcell', { name: '€20.00', exact: true }).waitFor();
  await inspect(page, 'invoices-payments-light');
  await paid.getByRole('link', { name: 'pi_story' }).click();
  await heading(page, 'Payment');
  const disputes = main.getByRole('grid', { name: 'Disputes' });
  await disputes.getByText('Needs a response').waitFor();
  await main.getByText('€40.00').waitFor(); // can be refunded
  await main.getByText('Nothing was refunded.').waitFor();
  assert.equal(await button(page, 'Refund').count(), 0);
  await inspectIn(page, 'payment-tenant', 'dark', 'phone');
});

step('the operator sees what it earned', async () => {
  expect('401');
  await page.goto('about:blank'); // or the page that is open asks for what it shows, without a session
  await page.context().clearCookies();
  await page.goto(`${PORTAL}/#/`);
  await signIn(page, PASSWORD, 'op@example.com');
  await heading(page, 'Dashboard');
  await main.getByRole('heading', { name: 'Revenue, last 12 months' }).waitFor();
  await main.getByText('All accounts are in good standing.').waitFor();
  await inspect(page, 'dashboard-seller-light');
  await nav(page, 'Revenue');
  await heading(page, 'Revenue');
  await page.getByLabel('Group by', { exact: true }).selectOption('organization');
  await main
    .getByRole('gridcell', { name: /Acme|acme/ })
    .first()
    .waitFor();
  await inspect(page, 'revenue-invoice-light');
  await nav(page, 'Organizations');
  await main.getByRole('link', { name: /acme|Acme/ }).click();
  await page.getByRole('link', { name: 'Payments and invoices' }).click();
  await main.getByRole('grid', { name: 'Invoices' }).getByRole('link', { name: /\d/ }).first().click();
  await heading(page, /^Invoice /);
});

step('a payment is refunded in part', async () => {
  await nav(page, 'Organizations');
  await main.getByRole('link', { name: /acme|Acme/ }).click();
  await page.getByRole('link', { name: 'Payments and invoices' }).click();
  await button(page, 'Record payment').click();
  await dialog.getByLabel('Amount (EUR)').fill('40');
  await dialog.getByLabel('Reference').fill('bank-77');
  await dialog.getByRole('button', { name: 'Record' }).click();
  await main.getByRole('link', { name: 'bank-77' }).click();
  await heading(page, 'Payment');
  await button(page, 'Refund').click();
  await dialog.getByLabel('Amount (EUR)').fill('40.01');
  await dialog.getByLabel('Reason').fill('outage on Monday');
  await dialog.getByLabel('Reference').fill('bank-78');
  await dialog.getByRole('button', { name: /^Refund €/ }).click();
  await dialog.locator('#refund-amount-help').getByText('At most €40.00 can be refunded.').waitFor();
  await inspect(page, 'refund-error-light');
  await dialog.getByLabel('Amount (EUR)').fill('12.5');
  await dialog.getByRole('button', { name: 'Equivalent CLI / API call' }).click();
  await dialog.getByText(/^basalt refund create pay-/).waitFor();
  await inspect(page, 'refund-light');
  await dialog.getByRole('button', { name: 'Refund €12.50', exact: true }).click();
  await dialog.waitFor({ state: 'detached' });
  const refunds = main.getByRole('grid', { name: 'Refunds' });
  await refunds.getByRole('gridcell', { name: '€12.50', exact: true }).waitFor();
  await refunds.getByText('outage on Monday').waitFor();
  await main.getByText('€27.50').waitFor(); // can be refunded
  await inspect(page, 'payment-light');
  await inspectIn(page, 'payment', 'dark', 'phone');
});

step('refunds and disputes of all customers', async () => {
  await nav(page, 'Refunds');
  await heading(page, 'Refunds');
  await main.getByRole('grid', { name: 'Refunds' }).getByText('bank-78').waitFor();
  await inspect(page, 'refunds-light');
  await inspectIn(page, 'refunds', 'dark', 'phone');
  await nav(page, 'Disputes');
  await heading(page, 'Disputes');
  const disputes = main.getByRole('grid', { name: 'Disputes' });
  await disputes.getByText('du_story').waitFor();
  await inspect(page, 'disputes-light');
  await inspectIn(page, 'disputes', 'dark', 'phone');
  await main.getByLabel('State', { exact: true }).selectOption('Won');
  await main.getByText('du_story').waitFor({ state: 'detached' });
  await main.getByLabel('State', { exact: true }).selectOption('NeedsResponse');
  await disputes.getByRole('link', { name: /^pay-/ }).click();
  await heading(page, 'Payment');
  await button(page, 'Refund').click();
  await dialog.getByText('without the payment provider').waitFor();
  await dialog.getByRole('button', { name: 'Cancel' }).click();
});

step('mail is sent to an address again', async () => {
  await nav(page, 'Mail suppressions');
  await heading(page, 'Mail suppressions');
  await main.getByText('550 5.1.1 no such user').waitFor();
  await inspect(page, 'mail-suppressions-light');
  await inspectIn(page, 'mail-suppressions', 'dark', 'phone');
  await main.getByRole('checkbox', { name: /gone@acme.example/ }).check();
  await button(page, 'Lift').click();
  await dialog.getByText('Mail is sent to the address again.').waitFor();
  await dialog.getByRole('button', { name: 'Lift' }).click();
  await main.getByText('No mail was returned').waitFor();
});

step('fees of disputes are charged', async () => {
  await nav(page, 'Online payments');
  await heading(page, 'Online payments');
  await main.getByLabel('Charge fees of disputes').check();
  await button(page, 'Save').click();
  await main.getByText('Payment settings saved.').waitFor();
  await page.reload();
  await heading(page, 'Online payments');
  assert.equal(await main.getByLabel('Charge fees of disputes').isChecked(), true);
  await inspect(page, 'payment-settings-light');
  await inspectIn(page, 'payment-settings', 'dark', 'phone');
});

await run();
