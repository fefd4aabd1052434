// What the portal costs in Chromium on this machine, over 20,000 instances:
// lines of a name and values with their units, which ../bench_test.go reads.
import { browser, heading, open, PORTAL, signIn } from './harness.mjs';

const { CHANGES } = process.env; // as long as it is read, 20 of the first 500 instances change a second
const rows = 500;
const say = (name, values) =>
  console.log(
    `${name}: ${Object.entries(values)
      .map(([unit, v]) => `${Number(v.toFixed(2))} ${unit}`)
      .join(' ')}`,
  );

/** load a page with nothing in the cache, until its heading is drawn and the
 * main thread is free; what is compared is the same files fetched alone. */
async function load(name, title, storageState) {
  const page = await open({ storageState }, { moves: true });
  const sizes = new Map();
  page.on('response', (r) => {
    if (!r.url().includes('/v1/')) sizes.set(r.url(), Number(r.headers()['content-length']));
  });
  await page.addInitScript((text) => {
    window.ready = new Promise((done) => {
      new window.MutationObserver((_, self) => {
        if (![...document.querySelectorAll('h1')].some((h) => h.textContent === text)) return;
        self.disconnect();
        window.requestAnimationFrame(() => setTimeout(() => done(performance.now())));
      }).observe(document, { childList: true, subtree: true, characterData: true });
    });
  }, title);
  await page.goto(PORTAL);
  const ms = await page.evaluate(() => window.ready);
  await page.waitForTimeout(1000); // what it loads afterwards counts too
  const filesMs = await page.evaluate(
    async (urls) => {
      const begun = performance.now();
      await Promise.all(urls.map(async (u) => (await fetch(u, { cache: 'no-store' })).arrayBuffer()));
      return performance.now() - begun;
    },
    [...sizes.keys()],
  );
  const bytes = [...sizes.values()].reduce((a, b) => a + b, 0);
  say(`load/${name}`, { kB: bytes / 1000, 'most-kB': 250, ms, 'files-ms': filesMs });
  await page.context().close();
}

/** took is the time from what one does until its answer is drawn, and the time
 * of the same question to the API alone. */
async function took(page, name, { act, on, shows: [selector, text], asks }) {
  await page.evaluate(
    ({ on, selector, text }) => {
      window.shown = new Promise((done) => {
        window.addEventListener(
          on,
          () => {
            const begun = performance.now();
            new window.MutationObserver((_, self) => {
              if (!document.querySelector(selector)?.textContent.includes(text)) return;
              self.disconnect();
              window.requestAnimationFrame(() => setTimeout(() => done(performance.now() - begun)));
            }).observe(document.body, { childList: true, subtree: true, characterData: true });
          },
          { capture: true, once: true },
        );
      });
    },
    { on, selector, text },
  );
  await act();
  const ms = await page.evaluate(() => window.shown);
  const apiMs = await page.evaluate(async (query) => {
    const begun = performance.now();
    await (await fetch(`/portal/v1/instances?${query}`)).json();
    return performance.now() - begun;
  }, asks);
  say(`table/${name}`, { ms, 'API-ms': apiMs });
}

/** scrolled says how smoothly a page scrolls through its rows, down and up, by
 * the wheel: distances of frames, and tasks of more than 50 ms. */
async function scrolled(page, name) {
  await page.bringToFront();
  await page.mouse.move(700, 500);
  await page.waitForTimeout(1000);
  await page.evaluate(() => {
    const seen = (window.seen = { gaps: [], tasks: [] });
    new window.PerformanceObserver((list) => seen.tasks.push(...list.getEntries().map((e) => e.duration))).observe({
      type: 'longtask',
    });
    let last = performance.now();
    const frame = (now) => {
      seen.gaps.push(now - last);
      last = now;
      window.requestAnimationFrame(frame);
    };
    window.requestAnimationFrame(frame);
  });
  for (let i = 0; i < 200; i++) {
    await page.mouse.wheel(0, i < 100 ? 300 : -300);
    await page.waitForTimeout(16);
  }
  const { gaps, tasks } = await page.evaluate(() => ({
    gaps: window.seen.gaps.slice(1).sort((a, b) => a - b),
    tasks: window.seen.tasks,
  }));
  say(`scroll/${name}`, {
    'p95-ms': gaps[Math.floor(gaps.length * 0.95)],
    'worst-ms': gaps.at(-1),
    'long-tasks': tasks.length,
    'long-tasks-ms': tasks.reduce((a, b) => a + b, 0),
  });
}

/** plain is a page of the same rows without framework and style; step changes a row of it. */
async function plain(from) {
  const cells = await from.evaluate(() =>
    [...document.querySelectorAll('tbody tr')].map((tr) => [...tr.cells].map((td) => td.textContent)),
  );
  const page = await open({}, { moves: true });
  await page.goto('about:blank');
  await page.evaluate((text) => {
    const table = document.body.appendChild(document.createElement('table'));
    for (const row of text) {
      const tr = table.insertRow();
      for (const cell of row) tr.insertCell().textContent = cell;
    }
    let n = 0;
    window.step = () => (table.rows[++n % table.rows.length].cells[1].textContent = `Running step ${n}`);
  }, cells);
  return page;
}

const steps = (page) =>
  page.evaluate(() =>
    Math.max(
      ...[...document.querySelectorAll('tbody td:nth-child(2)')].map((td) =>
        Number(/step (\d+)/.exec(td.textContent)?.[1] ?? 0),
      ),
    ),
  );

await load('sign-in', 'Sign in');
const page = await open({}, { moves: true });
await page.goto(PORTAL);
await signIn(page);
await heading(page, 'Dashboard');
await load('dashboard', 'Dashboard', await page.context().storageState());

await page.goto(`${PORTAL}/#/instances`);
await page.getByRole('link', { name: 'train-00000' }).waitFor();
const filter = page.getByRole('textbox', { name: 'Filter by name, ID or address' });
const firstRow = 'tbody tr a';
await took(page, 'page', {
  act: () => page.getByRole('button', { name: 'Next page' }).click(),
  on: 'click',
  shows: [firstRow, 'train-00025'],
  asks: 'limit=25',
});
const search = async (text) => {
  await filter.fill(text);
  await filter.press('Enter');
};
await took(page, 'filter', {
  act: () => search('train-19999'),
  on: 'keydown',
  shows: [firstRow, 'train-19999'],
  asks: 'limit=25&search=train-19999',
});
await took(page, 'filter-none', {
  act: () => search('nothing'),
  on: 'keydown',
  shows: ['.pf-v6-c-empty-state', 'No results for “nothing”'],
  asks: 'limit=25&search=nothing',
});
await search('');
await page.getByRole('link', { name: 'train-00000' }).waitFor();
await took(page, 'rows=500', {
  act: () => page.getByLabel('Rows per page').selectOption(String(rows)),
  on: 'change',
  shows: ['.basalt-pager', `1–${rows} of `],
  asks: `limit=${rows}`,
});

const bare = await plain(page);
await scrolled(bare, 'plain');
await scrolled(page, 'portal');
await bare.evaluate(() => (window.timer = window.setInterval(window.step, 50)));
await scrolled(bare, 'plain-changing');
await bare.context().close();
const before = await steps(page);
const end = new AbortController();
await fetch(CHANGES, { signal: end.signal });
await scrolled(page, 'portal-changing');
if ((await steps(page)) === before) throw new Error('no change came to the page');
end.abort();
await browser.close();
