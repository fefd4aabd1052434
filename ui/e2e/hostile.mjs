// Text that tries to become something else, in every field that a page has.
import { complain, settled } from './harness.mjs';

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

/** The same in fewer goes, for many forms. */
const together = [hostile.slice(0, 4).join(''), hostile[4], hostile.slice(5, 8).join(''), hostile[8]];

/** within is the dialog that is open, or else the page. */
async function within(page) {
  const dialog = page.getByRole('dialog');
  return (await dialog.count()) > 0 ? dialog : page.locator('main');
}

const texts = [
  'input:not([type])',
  ...['text', 'search', 'email', 'password', 'url'].map((type) => `input[type=${type}]`),
  'textarea',
];

/** fields are the visible ones that take text, of the dialog that is open or else of the page. */
export const fields = async (page) =>
  (await within(page))
    .locator(texts.map((t) => `${t}:read-write`).join())
    .filter({ visible: true })
    .elementHandles();

/** harmless says that nothing of it ran, and nothing broke out of the page or its dialog. */
export async function harmless(page, what) {
  const found = await page.evaluate(() => {
    const box = document.querySelector('[role=dialog]');
    return {
      ran: window.pwned !== undefined,
      markup: document.querySelector('img[src="x"]') !== null,
      link: document.querySelector('a[href^="javascript:" i]') !== null,
      page: document.documentElement.scrollWidth - window.innerWidth,
      table: Math.max(
        0,
        ...[...document.querySelectorAll('main table')].map((t) =>
          Math.ceil(t.getBoundingClientRect().right - window.innerWidth),
        ),
      ),
      dialog: box
        ? Math.max(box.scrollWidth - box.clientWidth, ...[...box.children].map((c) => c.scrollWidth - c.clientWidth))
        : 0,
    };
  });
  if (found.ran) complain(`${what}: script ran`);
  if (found.markup) complain(`${what}: text became markup`);
  if (found.link) complain(`${what}: a link that is a script`);
  if (found.page > 0) complain(`${what}: ${found.page} px wider than the window`);
  if (found.table > 0) complain(`${what}: a table ends ${found.table} px beyond the window`);
  if (found.dialog > 1) complain(`${what}: ${found.dialog} px wider than its dialog`);
}

/** attack every field with each text, submitting after each by submit. It answers how many fields there were. */
export async function attack(page, what, submit) {
  let most = 0;
  for (const text of hostile) {
    const found = await fields(page);
    most = Math.max(most, found.length);
    for (const f of found) await f.fill(text);
    await submit();
    await settled(page);
    await harmless(page, `${what}, ${JSON.stringify(text.slice(0, 30))}`);
  }
  return most;
}

/** refused says what a form says of what was sent: at a field, above them, or nothing. */
const refused = (page) =>
  page.evaluate(() => {
    const box = document.querySelector('[role=dialog]') ?? document.querySelector('main');
    const wrong = (e) => e.matches('[aria-invalid=true]') || (e.validity && !e.validity.valid);
    if (
      [...box.querySelectorAll('input, textarea, select')].some(wrong) ||
      box.querySelector('.pf-v6-c-form .pf-m-error')
    )
      return 'field';
    return box.querySelector('.pf-v6-c-alert.pf-m-danger') ? 'above' : '';
  });

/**
 * attackForm attacks a form that open opens, and whose button is submit;
 * without one nothing is sent. It must have at least so many fields of text, and
 * say at one of them what is wrong; what it takes it may close with.
 */
export async function attackForm(page, { what, open, submit, least, takes }) {
  let most = 0;
  let said = '';
  const begin = async () => {
    await open();
    await settled(page); // the search field of a list that turns out to be empty is gone then
  };
  await begin();
  for (const text of together) {
    let found = await fields(page);
    if (found.length < most) {
      await begin();
      found = await fields(page);
    }
    most = Math.max(most, found.length);
    for (const f of found) await f.fill(text);
    const button = (await within(page)).getByRole('button', { name: submit, exact: true }).last();
    if (submit && (await button.isEnabled())) {
      await button.click();
      await settled(page);
      await page.waitForFunction(() => !document.querySelector('.pf-m-in-progress')); // it was answered
    }
    await harmless(page, `${what}, ${JSON.stringify(text.slice(0, 30))}`);
    said = said === 'field' ? said : await refused(page);
  }
  if (most < least) complain(`${what}: ${most} fields of text, not ${least}`);
  if (submit && !takes && said !== 'field')
    complain(`${what}: no field says what is wrong with it${said && ', only the form does'}`);
  return most;
}
