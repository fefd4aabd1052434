// A person at the portal: with a mouse, on a phone, or with a keyboard alone. What a person does is counted: a click, a tap,
// a key that acts, a link that is opened, a line that is entered. What is typed into a form is not.
import assert from 'node:assert/strict';
import { open, phone } from './harness.mjs';

/** mostTabs is how far a keyboard may be from anything. */
const mostTabs = 400;

/** reach presses Tab until the focus is where it should be. */
async function reach(page, target) {
  await target.waitFor();
  for (let n = 0; n < mostTabs; n++) {
    if (await target.evaluate((e) => e === document.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not reach ${target}`);
}

/** person opens a page in a view: desktop, phone or keyboard. */
export async function person(view) {
  const page = await open(view === 'phone' ? { viewport: phone, hasTouch: true } : {});
  const did = [];
  /** act counts what is done in another way. */
  const act = (what, how) => (did.push(what), how());
  /** press a button, or open a link. */
  const press = (what, target) =>
    act(what, async () => {
      if (view === 'phone') return target.tap();
      if (view === 'desktop') return target.click();
      await reach(page, target);
      return page.keyboard.press('Enter');
    });
  /** tick a check box. */
  const tick = (what, box) =>
    act(what, async () => {
      if (view !== 'keyboard') return box.check();
      await reach(page, box);
      return page.keyboard.press('Space');
    });
  /** enter a text into a field. */
  const enter = async (field, text) => {
    if (view !== 'keyboard') return field.fill(text);
    await reach(page, field);
    await page.keyboard.press('Control+A');
    return page.keyboard.type(text);
  };
  /** go to a page by the navigation, which a phone hides, opening the group that the page is in. */
  const go = async (group, name) => {
    const main = page.getByRole('navigation', { name: 'Main' });
    if (view === 'phone') await press('open the menu', page.getByRole('button', { name: 'Menu', exact: true }));
    const link = main.getByRole('link', { name, exact: true });
    if (!(await link.isVisible())) await press(`open ${group}`, main.getByRole('button', { name: group, exact: true }));
    await press(`go to ${name}`, link);
  };
  return { page, view, did, act, press, tick, enter, go };
}

/** atMost checks what a journey took. */
export function atMost(most, { did }) {
  console.log(`${did.length} interactions: ${did.join(', ')}`);
  assert.ok(did.length <= most, `${did.length} interactions, want at most ${most}`);
}
