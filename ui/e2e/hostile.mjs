// Text that tries to become something else, in every field that a page has.
import { complain } from './harness.mjs';

export const hostile = [
  '<img src=x onerror="window.pwned=1">',
  '"><script>window.pwned=1</script>',
  "'-window.pwned=1-'",
  '${window.pwned=1}{{window.pwned=1}}',
  'javascript:window.pwned=1',
  '../../v1/users?x=#y',
  '\u202egnp.exe\u2066\u200b',
  'a\u0000b',
  'x'.repeat(10_000),
];

/** fields are the visible ones that take text, of the dialog that is open or else of the page. */
export async function fields(page) {
  const dialog = page.getByRole('dialog');
  const within = (await dialog.count()) > 0 ? dialog : page.locator('main');
  const all = await within.locator('input:not([type]), input[type=text], input[type=search], input[type=email], input[type=password], input[type=url], textarea').all();
  const open = [];
  for (const f of all) if ((await f.isVisible()) && (await f.isEditable())) open.push(f);
  return open;
}

/** harmless says that nothing of it ran, and nothing broke out of the page. */
export async function harmless(page, what) {
  if (await page.evaluate(() => window.pwned !== undefined)) complain(`${what}: script ran`);
  if (await page.evaluate(() => document.querySelector('img[src="x"]') !== null)) complain(`${what}: text became markup`);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
  if (wide > 0) complain(`${what}: ${wide} px wider than the window`);
}

/** attack every field with each text, submitting after each by submit. It answers how many fields there were. */
export async function attack(page, what, submit) {
  let most = 0;
  for (const text of hostile) {
    const found = await fields(page);
    most = Math.max(most, found.length);
    for (const f of found) await f.fill(text);
    await submit();
    await page.waitForTimeout(150);
    await harmless(page, `${what}, ${JSON.stringify(text.slice(0, 30))}`);
  }
  return most;
}
