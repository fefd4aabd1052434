// The invoice of a month that is over, by its customer and by the operator: its
// lines, the hours of one, the minutes of an hour. LAST_MONTH is its first day.
// Run by ../e2e_invoice_test.go.
import assert from 'node:assert/strict';
import { expect, heading, inspect, inspectIn, nav, open, PASSWORD, PORTAL, run, signIn, step } from './harness.mjs';

const { LAST_MONTH } = process.env;
const page = await open();
const main = page.getByRole('main');
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

await run();
