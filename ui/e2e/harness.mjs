// What the stories share: a browser in which every message of the console,
// every request to another host and every finding of axe-core is a failure, and
// steps that run in order. PORTAL, EMAIL and so on come from ../e2e_test.go.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { spent } from './cpu.mjs';
import './relay.mjs';

export const { PORTAL, OPERATOR, EMAIL, PASSWORD, SHOTS, FAILED, IDP } = process.env;
const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');
export const patience = 60_000; // ms: machines of CI are slow

const launch = () =>
  chromium.launch({
    executablePath: process.env.BROWSER,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      '--in-process-gpu',
    ],
  });
// Chromium was seen to crash before it had opened anything: then nothing was tried yet.
export const browser = await launch().catch(launch);

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

/** Requests of each page that have no answer yet, but for the watch, which never ends, and files that are sent, which may take long. */
const pending = new WeakMap();

export const wide = { width: 1280, height: 900 };
export const phone = { width: 390, height: 844 };

/** still stops what fades and turns, before anything is shown. The policy allows style sheets that are objects. */
function still() {
  const sheet = new window.CSSStyleSheet();
  sheet.replaceSync('*, ::before, ::after { animation: none !important; transition: none !important; }');
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
}

/** open is a page of a browser of its own. Nothing moves on it unless it is measured: what turns while a page waits is
 * drawn sixty times a second, and was three quarters of the browser's time. */
export async function open(options, { moves = false } = {}) {
  const context = await browser.newContext({
    locale: 'en-GB',
    viewport: wide,
    reducedMotion: moves ? 'no-preference' : 'reduce',
    ...options,
  });
  context.setDefaultTimeout(patience);
  if (!moves) await context.addInitScript(still);
  context.on('page', listen); // every page and window of it
  return context.newPage();
}

/** All that the pages have written into their consoles. */
const said = [];

function listen(page) {
  page.on('console', (m) => {
    said.push(`${new Date().toISOString()} ${m.type()}: ${m.text()} (${m.location().url})`);
    const i = expected.findIndex((x) => m.text().includes(x));
    // A form that is not complete is told so by a dry run.
    if (m.location().url.includes('dryRun=')) return;
    if (tolerated.some((x) => m.text().includes(x))) return;
    if (i >= 0) expected.splice(i, 1);
    else if (/status of (409|412)/.test(m.text())) refused.set(m.location().url, m.text());
    else complain(`console, ${m.type()}: ${m.text()} (${m.location().url})`);
  });
  page.on('response', (r) => r.ok() && ['PUT', 'PATCH'].includes(r.request().method()) && refused.delete(r.url()));
  page.on('pageerror', (e) => complain(`page: ${e}`));
  const waits = new Set();
  pending.set(page, waits);
  page.on('requestfinished', (r) => waits.delete(r));
  page.on('requestfailed', (r) => waits.delete(r));
  page.on('request', (r) => {
    // Nobody waits for what the page before asked; and a navigation that is a download never ends.
    if (r.isNavigationRequest()) waits.clear();
    else if (!/\/v1\/watch|\/content$/.test(r.url())) waits.add(r);
    if (![PORTAL, IDP].some((own) => own && r.url().startsWith(`${own}/`)))
      complain(`a request to elsewhere: ${r.url()}`);
  });
}

export const button = (page, name) => page.getByRole('button', { name, exact: true });
export const heading = (page, name) => page.getByRole('heading', { level: 1, name }).waitFor();
/** nav goes to a page by the navigation, opening the group that it is in. */
export async function nav(page, name) {
  const main = page.getByRole('navigation', { name: 'Main' });
  const link = main.getByRole('link', { name, exact: true });
  const closed = main.locator('button[aria-expanded="false"]');
  await main.getByRole('link').first().waitFor();
  while ((await link.count()) === 0 && (await closed.count()) > 0) await closed.first().click();
  await link.click();
}

/** The commands that forms say they are the same as: ../commands_test.go looks whether there are such. */
const commands = new Set();
const longest = 4000; // characters: a hostile name of 10,000 is no command that anybody types

/**
 * settled waits until the page has what it asks for, has drawn it, and nothing fades in any more. Between two
 * pages there is none: React keeps the next one back for 300 ms when its code has come late.
 */
export async function settled(page) {
  const end = Date.now() + patience;
  for (let calm = 0; calm < 2;) {
    const drawn = await page.evaluate(async () => {
      await new Promise((done) => window.requestAnimationFrame(() => window.requestAnimationFrame(done)));
      return [...document.querySelectorAll('h1')].some((h) => h.checkVisibility());
    });
    calm = drawn && !pending.get(page)?.size ? calm + 1 : 0;
    if (Date.now() < end) continue;
    if (!drawn) complain(`no page in ${patience} ms: ${page.url()}`);
    break;
  }
  for (const r of pending.get(page) ?? []) complain(`no answer in ${patience} ms: ${r.url()}`);
  await page.evaluate(() =>
    Promise.all(
      document
        .getAnimations()
        .filter((a) => a.playState === 'running' && a.effect?.getComputedTiming().endTime < 2000)
        .map((a) => a.finished.catch(() => undefined)),
    ),
  );
}

/** Rules by which axe-core looks: a theme changes nothing but colours, which take it nearly half of its time. */
const colours = ['color-contrast', 'link-in-text-block'];
const rules = {
  all: {},
  colours: { runOnly: { type: 'rule', values: colours } },
  structure: { rules: Object.fromEntries(colours.map((rule) => [rule, { enabled: false }])) },
};

/** Addresses whose pages have been inspected in light by all rules. */
const known = new Set();

/** look runs axe-core in a page. Most of a page's elements are those around it: entries of the menu and parts of the
 * masthead that it has looked at by the same rules, in the same form of the same document, are left out. */
async function look(options) {
  const root = document.documentElement;
  const form = [
    JSON.stringify(options),
    root.className,
    window.innerWidth,
    getComputedStyle(root).getPropertyValue('--pf-t--global--color--brand--default'),
  ];
  const seen = (window.looked ??= new Set());
  const exclude = [...document.querySelectorAll('#sidebar li, .basalt-masthead-end > *, .basalt-footer')].filter(
    (e) => {
      const key = [...form, e.outerHTML].join();
      return seen.has(key) || !seen.add(key);
    },
  );
  return (
    await window.axe.run(exclude.length > 0 ? { exclude } : document, { ...options, resultTypes: ['violations'] })
  ).violations;
}

/** inspect lets axe-core look by some rules, and takes a picture where SHOTS names a folder.
 * The policy lets no script in by a tag: axe comes by the debugger, once for each document. */
export async function inspect(page, what, by = 'all') {
  await settled(page);
  if (SHOTS) await page.screenshot({ path: join(SHOTS, `${what}.png`), fullPage: true });
  for (const text of await page.locator('[data-same] code').allTextContents())
    if (text.startsWith('basalt ') && text.length < longest) commands.add(text);
  if (!(await page.evaluate(() => 'axe' in window))) await page.evaluate(axe);
  const violations = await page.evaluate(look, rules[by]);
  for (const v of violations)
    for (const n of v.nodes)
      complain(`axe, ${what}: ${v.id}: ${v.help}: ${n.html.slice(0, 300)} ${n.any[0]?.message ?? ''}`);
  const beyond = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (beyond > 0) complain(`${what}: ${beyond} px wider than the window`);
  if (by === 'all' && (await page.locator('html:not(.pf-v6-theme-dark)').count()) > 0) known.add(page.url());
}

const forms = {
  dark: [wide, 'dark'],
  phone: [phone, 'light'],
  'phone-dark': [phone, 'dark'],
  zoom: [{ width: 640, height: 450 }, 'light'], // a window of twice that, at 200 %
};

/** inspectIn inspects a light page as it stands in each of these forms, and leaves it as it was: much cheaper than to load
 * it in each anew. Of a known page dark changes the colours, and its size all else. */
export async function inspectIn(page, what, ...names) {
  const before = page.viewportSize();
  for (const name of names) {
    const [size, colorScheme] = forms[name];
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(size);
    await page
      .locator(colorScheme === 'dark' ? 'html.pf-v6-theme-dark' : 'html:not(.pf-v6-theme-dark)')
      .waitFor({ state: 'attached' });
    await inspect(
      page,
      `${what}-${name}`,
      !known.has(page.url()) ? 'all' : colorScheme === 'dark' ? 'colours' : 'structure',
    );
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(before);
}

/** speak chooses a language, 'Deutsch' or 'English', in the page's menu. */
export async function speak(page, language) {
  await page.getByRole('button', { name: /^(Account of|Konto von) / }).click();
  await page.getByRole('menuitem', { name: language }).click();
  await page.locator(`html[lang=${language === 'Deutsch' ? 'de' : 'en'}]`).waitFor({ state: 'attached' });
  await page.keyboard.press('Escape');
}

export async function signIn(page, password = PASSWORD, email = EMAIL) {
  await page.getByLabel('E-mail address').fill(email);
  await page.getByLabel('Password').fill(password);
  await button(page, 'Sign in').click();
}

const steps = [];
export const step = (name, run) => steps.push({ name, run });

/** explain leaves in FAILED what every open page shows and where it is. */
async function explain() {
  if (!FAILED) return;
  const pages = browser.contexts().flatMap((c) => c.pages());
  for (const [i, p] of pages.entries()) {
    const at = join(FAILED, `page-${i + 1}`);
    await p.screenshot({ path: `${at}.png`, timeout: 10_000 }).catch(() => undefined);
    const html = await Promise.race([p.content(), new Promise((done) => setTimeout(done, 10_000, 'no answer'))]).catch(
      String,
    );
    writeFileSync(`${at}.html`, `<!-- ${p.url()} -->\n${html}`);
  }
  writeFileSync(join(FAILED, 'console.txt'), `${said.join('\n')}\n`);
}

/** run the steps, and end. */
export async function run() {
  let failed = false;
  for (const { name, run: doIt } of steps) {
    const [begun, before] = [performance.now(), spent()];
    try {
      await doIt();
      console.log(
        `ok   ${name} (${Math.round(performance.now() - begun)} ms, ${Math.round(spent() - before)} ms of a processor)`,
      );
    } catch (e) {
      failed = true;
      console.log(`FAIL ${name}: ${e.stack}`);
      await explain();
      break;
    }
  }
  if (!failed && complaints.length + refused.size > 0) await explain();
  console.log(`${Math.round(spent())} ms of a processor`);
  await browser.close();
  for (const [url, text] of refused) complain(`console: ${text} (${url})`);
  for (const c of complaints) console.log(`FAIL ${c}`);
  for (const c of commands) console.log(`SAME ${JSON.stringify(c)}`);
  process.exit(failed || complaints.length > 0 ? 1 : 0);
}
