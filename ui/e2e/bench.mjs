// What a page of the portal costs in Chromium on this machine, printed as "go
// test -bench" prints, for installer/dev/benchreport. Run by ../bench_test.go,
// over 20,000 instances of which 500 change, 100 a second.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { browser, heading, open, PORTAL, SHOTS, signIn } from './harness.mjs';

const print = (name, ...values) => console.log(`Benchmark${name} 1 ${values.map(([v, unit]) => `${v} ${unit}`).join(' ')}`);

// load a page with nothing in the cache; what is compared is the time until it
// can be used, and the same files fetched alone.
async function load(context, name, title) {
  const page = await context.newPage();
  const sizes = new Map();
  page.on('response', (r) => {
    if (!r.url().includes('/v1/')) sizes.set(r.url(), Number(r.headers()['content-length']));
  });
  await page.goto(PORTAL);
  await heading(page, title);
  const ready = await page.evaluate(() => performance.now());
  await page.waitForTimeout(1000);
  const alone = await page.evaluate(async (urls) => {
    const begun = performance.now();
    await Promise.all(urls.map(async (u) => (await fetch(u, { cache: 'no-store' })).arrayBuffer()));
    return performance.now() - begun;
  }, [...sizes.keys()]);
  print(`PortalLoad/${name}`, [[...sizes.values()].reduce((a, b) => a + b, 0) / 1000, 'kB'], [300, 'most-kB'], [ready, 'ms'], [alone, 'files-ms']);
  await page.close();
}

// took is the time until f is done, and of the same question to the API alone.
async function took(page, name, path, f) {
  const begun = performance.now();
  await f();
  const ms = performance.now() - begun;
  const alone = await page.evaluate(async (p) => {
    const at = performance.now();
    await (await fetch(`/portal/v1/instances?${p}`)).json();
    return performance.now() - at;
  }, path);
  print(`PortalTable/${name}`, [ms, 'ms'], [alone, 'API-ms']);
}

// longest task of the page's main thread while f runs, in ms, and the greatest
// distance between two frames.
async function longest(page, f) {
  const path = join(SHOTS, 'trace.json');
  await browser.startTracing(page, { path, categories: ['disabled-by-default-devtools.timeline', 'toplevel', '__metadata'] });
  const frames = await page.evaluate(() => {
    const gaps = (window.gaps = []);
    let last = performance.now();
    const frame = (now) => {
      gaps.push(now - last);
      last = now;
      if (window.gaps === gaps) window.requestAnimationFrame(frame);
    };
    window.requestAnimationFrame(frame);
  }).then(f).then(() => page.evaluate(() => {
    const got = window.gaps;
    window.gaps = null;
    return got.slice(1).sort((a, b) => a - b);
  }));
  await browser.stopTracing();
  const { traceEvents } = JSON.parse(readFileSync(path, 'utf8'));
  const main = new Set(traceEvents.filter((e) => e.name === 'thread_name' && e.args.name === 'CrRendererMain').map((e) => `${e.pid}/${e.tid}`));
  const tasks = traceEvents.filter((e) => e.ph === 'X' && /RunTask$/.test(e.name) && main.has(`${e.pid}/${e.tid}`)).map((e) => e.dur / 1000);
  return { task: Math.max(...tasks), frame: frames.at(-1), p95: frames[Math.floor(frames.length * 0.95)] };
}

const fresh = await open({});
await load(fresh.context(), 'sign-in', 'Sign in');
await fresh.goto(PORTAL);
await signIn(fresh);
await heading(fresh, 'Dashboard');
const signedIn = await open({ storageState: await fresh.context().storageState() });
await load(signedIn.context(), 'dashboard', 'Dashboard');

const page = signedIn;
await page.goto(`${PORTAL}/#/instances`);
await page.getByRole('link', { name: 'train-00000' }).waitFor();
await took(page, 'page=25', 'limit=25', async () => {
  await page.getByRole('button', { name: 'Next page' }).click();
  await page.getByRole('link', { name: 'train-00025' }).waitFor();
});
const filter = page.getByRole('textbox', { name: 'Filter by name, id or address' });
await took(page, 'filter', 'limit=25&search=train-19999', async () => {
  await filter.fill('train-19999');
  await filter.press('Enter');
  await page.getByText('1 shown').waitFor();
});
await took(page, 'filter-none', 'limit=25&search=nothing', async () => {
  await filter.fill('nothing');
  await filter.press('Enter');
  await page.getByText('Nothing matches nothing').waitFor();
});
await filter.fill('');
await page.getByRole('link', { name: 'train-00000' }).waitFor();
await took(page, 'page=500', 'limit=500', async () => {
  await page.getByLabel('Rows on a page').selectOption('500');
  await page.getByText('500 shown').waitFor();
});
await page.waitForTimeout(1000);
const still = await longest(page, () => page.waitForTimeout(4000));
await page.mouse.move(700, 500);
const scrolled = await longest(page, async () => {
  for (let i = 0; i < 200; i++) {
    await page.mouse.wheel(0, i < 100 ? 400 : -400);
    await page.waitForTimeout(20);
  }
});
print('PortalScroll/rows=500', [scrolled.task, 'task-ms'], [still.task, 'still-task-ms'], [scrolled.p95, 'frame-p95-ms'], [scrolled.frame, 'frame-worst-ms'], [still.p95, 'still-frame-p95-ms']);
await browser.close();
