// Charts of use, in Chromium: an instance's on a pretended hypervisor whose
// numbers change, the operator's node and card with what each tenant holds, by
// accessible names; in light, dark and on a phone. Run by ../e2e_charts_test.go.
import assert from 'node:assert/strict';
import {
  complain,
  expect,
  heading,
  inspect,
  inspectIn,
  open,
  PASSWORD,
  patience,
  PORTAL,
  run,
  signIn,
  step,
} from './harness.mjs';

const { INSTANCE, NODE } = process.env;
const page = await open({});

const figure = (p, name) => p.getByRole('figure', { name, exact: true });
const value = async (p, chart, series) =>
  Number(await figure(p, chart).locator(`[data-series="${series}"]`).getAttribute('data-value'));

/** until a chart's latest value is as wanted; the values that it had. The chart is in a part of the page. */
async function until(p, chart, series, what, wanted, part = p) {
  const seen = [];
  for (const end = Date.now() + patience; Date.now() < end; await p.waitForTimeout(100)) {
    const v = await value(part, chart, series);
    if (v !== seen.at(-1)) seen.push(v);
    if (wanted(v, seen)) return seen;
  }
  complain(`${chart} was never ${what}: ${seen}`);
  return seen;
}

step('an instance’s charts move', async () => {
  await page.goto(PORTAL);
  await signIn(page);
  await heading(page, 'Dashboard');
  await page.goto(`${PORTAL}/#/instances/${INSTANCE}`);
  await page.getByRole('link', { name: 'Monitoring' }).click();
  await figure(page, 'CPU').waitFor();
  await until(page, 'CPU', 'cpu', 'above zero', (v) => v > 0);
  await until(page, 'CPU', 'cpu', 'changing', (_, seen) => seen.length > 2);
  assert.ok((await value(page, 'Memory', 'memory')) > 1e6);
  assert.match(await figure(page, 'Disk').innerText(), /read .*\/s/);
  await inspect(page, 'charts-light');
});

step('a moment can be read by keyboard and by pointer', async () => {
  const moment = page.getByRole('slider', { name: 'CPU at a point in time' });
  await moment.focus();
  await page.keyboard.press('ArrowLeft');
  const said = await moment.getAttribute('aria-valuetext');
  assert.match(said, /^\d\d:\d\d:\d\d UTC: CPU /);
  await figure(page, 'CPU').getByText(said).waitFor();
  await moment.blur();
  await moment.hover({ position: { x: 200, y: 60 } });
  await figure(page, 'CPU')
    .getByText(/UTC: CPU no data/)
    .waitFor();
});

step('ranges', async () => {
  for (const name of ['1 h', '24 h', '15 min']) {
    await page.getByRole('button', { name, exact: true }).click();
    await figure(page, 'CPU').waitFor();
  }
});

step('dark, and on a phone', () => inspectIn(page, 'charts', 'dark', 'phone'));

step('a node that does not answer is said so, and no chart', async () => {
  expect('503');
  await page.route('**/samples?**', (r) =>
    r.fulfill({
      status: 503,
      contentType: 'application/problem+json',
      json: { code: 'unavailable', detail: 'node n2, which must answer this, cannot be reached', hint: 'try again' },
    }),
  );
  await page.getByText('cannot be reached').waitFor();
  assert.equal(await page.getByRole('figure').count(), 0);
  await page.unroute('**/samples?**');
});

step('the operator sees the node, its card, and what each tenant holds', async () => {
  const p = await open({});
  await p.goto(PORTAL);
  await signIn(p, PASSWORD, 'op@example.com');
  await heading(p, 'Dashboard');
  await p.goto(`${PORTAL}/#/nodes`);
  await p.getByRole('main').getByRole('link', { name: NODE, exact: true }).click();
  await heading(p, NODE);
  const card = p.getByRole('region', { name: /^Utilization of / });
  await p.getByRole('region', { name: 'Node utilization' }).getByRole('figure', { name: 'CPU' }).waitFor();
  await card.getByRole('figure', { name: 'GPU' }).waitFor();
  await p.locator('[data-resident="314572800"]').waitFor(); // 300 MiB of one tenant
  await p.locator('[data-resident="20971520"]').waitFor(); // 20 MiB of the other
  await until(p, 'GPU', 'gpu', 'above zero', (v) => v > 0, card);
  await inspect(p, 'node-light');
  await inspectIn(p, 'node', 'phone');
  await p.context().close();
});

await run();
