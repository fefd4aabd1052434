// Every page of the portal, by links only, as each role, in light and dark: a crawler opens one object of each kind and
// all of its tabs. Besides what harness.mjs complains about, no page may show what a program failed to write as text, and
// a page to which no link leads is an error. Run by ../e2e_tour_test.go.
import { readFileSync } from 'node:fs';
import {
  complain,
  heading,
  inspect,
  inspectIn,
  open,
  PASSWORD,
  PORTAL,
  run,
  settled,
  signIn,
  step,
} from './harness.mjs';

const source = readFileSync(new URL('../src/routes.tsx', import.meta.url), 'utf8');
const routes = [...source.matchAll(/path: '([^']+)'/g)].map((m) => m[1]);

/** Pages to which buttons and the user's menu lead, and one to which only a payment provider does. */
const byButtons = ['/account', '/instances/new'];
const byProvider = '/checkouts/:id';

const segments = (path) => path.split('/').slice(1);

/** matches tells whether a route is that of an address. */
function matches(route, path) {
  const [want, have] = [segments(route), segments(path)];
  return (
    have.length <= want.length && want.every((w, i) => (w.startsWith(':') ? have[i] || w.endsWith('?') : w === have[i]))
  );
}

/** name is what all pages of a kind have in common: "instances-id-storage". */
function name(path) {
  const route = routes.find((r) => matches(r, path));
  if (!route) return undefined;
  const want = segments(route);
  const parts = segments(path).map((part, i) => (want[i].startsWith(':id') ? 'id' : part));
  return { route, name: parts.filter(Boolean).join('-') || 'dashboard' };
}

const wrong = /\b(undefined|NaN|Invalid Date)\b|\[object |\{\{|\$\{/;

/** links returns the addresses in the portal to which a page has links. */
async function links(page) {
  const hrefs = await page
    .locator('a[href^="#/"], a[href^="/#/"]')
    .evaluateAll((all) => all.map((a) => a.hash.slice(1)));
  return [...new Set(hrefs)];
}

/** unfold opens all groups of the navigation. */
async function unfold(page) {
  const closed = page.getByRole('navigation', { name: 'Main' }).locator('button[aria-expanded="false"]');
  while ((await closed.count()) > 0) await closed.first().click();
}

const reached = new Set();

/** tour opens every page that links lead to, each kind of it once. */
async function tour(role, email) {
  const page = await open({ viewport: { width: 1280, height: 1600 } });
  await page.goto(PORTAL);
  await signIn(page, PASSWORD, email);
  await heading(page, 'Dashboard');
  await unfold(page);
  const seen = new Set();
  const queue = ['/', ...byButtons];
  for (let path; (path = queue.shift()) !== undefined;) {
    const at = name(path.split('?')[0]);
    if (!at) {
      complain(`${role}: a link leads to ${path}, which is no page`);
      continue;
    }
    if (seen.has(at.name)) continue;
    seen.add(at.name);
    reached.add(at.route);
    await page.goto(`${PORTAL}/#${path}`);
    await settled(page);
    const text = await page.getByRole('main').innerText();
    const found = wrong.exec(text);
    if (found)
      complain(
        `${role}, ${path}: shows ${JSON.stringify(text.slice(Math.max(0, found.index - 60), found.index + 60))}`,
      );
    await inspect(page, `tour-${role}-${at.name}-light`);
    await inspectIn(page, `tour-${role}-${at.name}`, 'dark');
    queue.push(...(await links(page)));
  }
  console.log(`${role}: ${seen.size} pages: ${[...seen].join(' ')}`);
  await page.context().close();
}

for (const [role, email] of [
  ['operator', 'op@example.com'],
  ['reseller', 'reseller@example.com'],
  ['customer', 'ann@example.com'],
])
  step(`every page of ${role === 'operator' ? 'an' : 'a'} ${role}`, () => tour(role, email));

step('links lead to every page', () => {
  for (const route of routes) if (!reached.has(route) && route !== byProvider) complain(`no link leads to ${route}`);
});

await run();
