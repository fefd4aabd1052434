// An instance's consoles: what is typed into the serial one comes back, the
// screen shows the picture, both connect again by themselves, and nothing of it
// breaks the pages' policy. Run by ../e2e_console_test.go.
import assert from 'node:assert/strict';
import {
  button,
  expect,
  heading,
  inspect,
  inspectIn,
  open,
  OPERATOR,
  PASSWORD,
  phone,
  PORTAL,
  run,
  signIn,
  step,
} from './harness.mjs';

const { INSTANCE } = process.env;
const address = `${PORTAL}/#/instances/${INSTANCE}/console`;
const page = await open({});

const serial = (p) => p.getByRole('group', { name: 'Serial console' });
const type = async (p, text) => {
  await p.getByRole('textbox', { name: 'Serial console' }).focus();
  await p.keyboard.type(text);
};
const shows = (p, text) => serial(p).getByRole('listitem').filter({ hasText: text }).first().waitFor();
const connected = (p) => p.getByRole('status').getByText('Connected.').waitFor();
async function act(what) {
  const r = await fetch(`${PORTAL}/v1/instances/${INSTANCE}/${what}`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${OPERATOR}` },
  });
  assert.ok(r.ok, `${what}: ${r.status} ${await r.text()}`);
}

// Chromium has an opinion on reading a canvas often: once for each.
expect('willReadFrequently', 'willReadFrequently');

/** colours of the screen's picture, as [x, y, css colour] are asked for. */
const colourAt = (p, x, y) =>
  p.evaluate(
    ([x, y]) => {
      const canvas = document.querySelector('.basalt-screen canvas');
      return canvas ? [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3).join() : '';
    },
    [x, y],
  );
async function becomes(p, x, y, want) {
  let got;
  for (const end = Date.now() + 30_000; Date.now() < end; await p.waitForTimeout(100)) {
    got = await colourAt(p, x, y);
    if (got === want) return;
  }
  assert.equal(got, want, `the colour at ${x}, ${y}`);
}

step('the first load has neither terminal nor viewer', async () => {
  const seen = [];
  page.on('request', (r) => seen.push(r.url()));
  await page.goto(PORTAL);
  await signIn(page);
  await heading(page, 'Dashboard');
  assert.ok(!seen.some((u) => /serial|screen|xterm|rfb/i.test(u)), seen.join('\n'));
});

step('the serial console shows what was said, and echoes', async () => {
  await page.goto(address);
  await heading(page, 'train-1');
  await connected(page);
  await shows(page, 'booted');
  await type(page, 'hello basalt');
  await shows(page, 'hello basalt');
  await inspect(page, 'console-serial-light');
});

step('a key leaves the terminal', async () => {
  await page.getByRole('textbox', { name: 'Serial console' }).focus();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Serial console');
  await page.keyboard.press('Control+Shift+Enter');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BUTTON');
});

step('it connects again when the machine has started again', async () => {
  // Not what the page says meanwhile: it is soon said, and soon gone.
  const again = page.waitForEvent('websocket');
  await act('restart');
  await again;
  await connected(page);
  await type(page, 'here again');
  await shows(page, 'here again');
});

step('somebody else at the console is said', async () => {
  const other = await page.context().newPage();
  await other.goto(address);
  await other.getByRole('status').getByText('is in use by another client').waitFor();
  await button(other, 'Retry now').waitFor();
  await other.close();
});

step('the screen shows the picture, and takes keys', async () => {
  await button(page, 'Screen').click();
  await connected(page);
  await becomes(page, 10, 10, '255,255,255');
  await becomes(page, 50, 10, '255,255,0');
  await becomes(page, 250, 10, '0,0,255');
  await page.getByRole('application', { name: 'Screen' }).focus();
  await page.keyboard.press('a');
  await becomes(page, 5, 195, '255,128,0');
  await page.keyboard.press('Control+Shift+Enter');
  assert.equal(await page.evaluate(() => document.activeElement.tagName), 'BUTTON');
  await button(page, 'Send Ctrl-Alt-Del').click();
  await becomes(page, 70, 195, '255,128,0');
  await inspect(page, 'console-screen-light');
});

step('who leaves while it connects breaks nothing', async () => {
  await page.evaluate(async () => {
    for (const kind of ['serial', 'screen', 'serial', 'screen']) {
      document.getElementById(`console-${kind}`).click();
      await new Promise((done) => setTimeout(done)); // it has begun to connect
    }
  });
  await connected(page);
});

step('stopped, it says so and shows what was said', async () => {
  await act('stop');
  await page.getByText('Current state: Stopped').waitFor();
  await page.getByText('booted').waitFor();
  await inspect(page, 'console-stopped-light');
  await act('start');
  await connected(page);
});

step('dark and on a phone', async () => {
  const p = await open({ viewport: phone, hasTouch: true, storageState: await page.context().storageState() });
  await p.goto(address);
  await connected(p);
  await type(p, 'phone ');
  await shows(p, 'phone');
  await inspectIn(p, 'console-serial', 'phone', 'dark');
  await button(p, 'Screen').click();
  await connected(p);
  await becomes(p, 10, 10, '255,255,255');
  await inspectIn(p, 'console-screen', 'phone', 'dark');
  await p.context().close();
});

step('a viewer reads, and is told what it takes', async () => {
  const p = await open({});
  await p.goto(PORTAL);
  await signIn(p, PASSWORD, 'vera@example.com');
  await heading(p, 'Dashboard');
  await p.goto(address);
  await p.getByText('you need the Member role').waitFor();
  await p.getByText('booted').waitFor();
  await inspect(p, 'console-viewer-light');
  await p.context().close();
});

await run();
