// What the stories share: a browser in which every message of the console,
// every request to another host and every finding of axe-core is a failure, and
// steps that run in order. PORTAL, EMAIL and so on come from ../e2e_test.go.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';

export const { PORTAL, OPERATOR, EMAIL, PASSWORD, SHOTS } = process.env;
const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
export const patience = 60_000; // ms: machines of CI are slow

export const browser = await chromium.launch({
  executablePath: process.env.BROWSER,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});

const complaints = [];
export const complain = (what) => complaints.push(what);

/** Complaints that a test provokes: what the browser says of an answer that is no success. */
const expected = [];
export const expect = (...texts) => expected.push(...texts);

/** Saves that an agent's report has come before, by address: they are sent again on what is new, or it is a complaint. */
const refused = new Map();

/** What a test provokes any number of times, while it does. */
let tolerated = [];
export const tolerate = (...texts) => (tolerated = texts);

/** open is a page of a browser of its own. */
export async function open(options) {
  const context = await browser.newContext({ locale: 'en-GB', viewport: { width: 1280, height: 900 }, ...options });
  context.setDefaultTimeout(patience);
  context.on('page', listen); // every page and window of it
  return context.newPage();
}

function listen(page) {
  page.on('console', (m) => {
    const i = expected.findIndex((x) => m.text().includes(x));
    if (tolerated.some((x) => m.text().includes(x))) return;
    if (i >= 0) expected.splice(i, 1);
    else if (m.text().includes('status of 409')) refused.set(m.location().url, m.text());
    else complain(`console, ${m.type()}: ${m.text()} (${m.location().url})`);
  });
  page.on('response', (r) => r.ok() && r.request().method() === 'PUT' && refused.delete(r.url()));
  page.on('pageerror', (e) => complain(`page: ${e}`));
  page.on('request', (r) => {
    if (!r.url().startsWith(`${PORTAL}/`)) complain(`a request to elsewhere: ${r.url()}`);
  });
}

export const button = (page, name) => page.getByRole('button', { name, exact: true });
export const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();
export const nav = (page, name) => page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name, exact: true }).click();

/** The commands that forms say they are the same as: ../commands_test.go looks whether there are such. */
const commands = new Set();
const longest = 4000; // characters: a hostile name of 10,000 is no command that anybody types

/** inspect takes a picture and lets axe-core look.
 * The policy lets no script in by a tag: axe comes by the debugger. */
export async function inspect(page, what) {
  await page.waitForTimeout(300); // what fades in has faded in
  await page.screenshot({ path: join(SHOTS, `${what}.png`), fullPage: true });
  for (const text of await page.locator('[data-same] code').allTextContents()) if (text.startsWith('basalt ') && text.length < longest) commands.add(text);
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
  for (const v of violations) for (const n of v.nodes) complain(`axe, ${what}: ${v.id}: ${v.help}: ${n.html.slice(0, 300)} ${n.any[0]?.message ?? ''}`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 0) complain(`${what}: ${wide} px wider than the window`);
}

export async function signIn(page, password = PASSWORD, email = EMAIL) {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await button(page, 'Sign in').click();
}

const steps = [];
export const step = (name, run) => steps.push({ name, run });

/** run the steps, and end. page is the one of which a failure takes a picture. */
export async function run(page) {
  let failed = false;
  for (const { name, run: doIt } of steps) {
    const begun = performance.now();
    try {
      await doIt();
      console.log(`ok   ${name} (${Math.round(performance.now() - begun)} ms)`);
    } catch (e) {
      failed = true;
      console.log(`FAIL ${name}: ${e.stack}`);
      await page.screenshot({ path: join(SHOTS, 'failed.png'), fullPage: true }).catch(() => undefined);
      break;
    }
  }
  await browser.close();
  for (const [url, text] of refused) complain(`console: ${text} (${url})`);
  for (const c of complaints) console.log(`FAIL ${c}`);
  for (const c of commands) console.log(`SAME ${JSON.stringify(c)}`);
  process.exit(failed || complaints.length > 0 ? 1 : 0);
}
