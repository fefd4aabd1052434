// Hostile text in the fields of every form that tenants and operators have: no
// script runs, nothing breaks out of the page, and a field says what is wrong.
// Then as what was stored, on the pages that show it. Run by
// ../e2e_hostile_test.go.
import assert from 'node:assert/strict';
import { attackForm, harmless } from './hostile.mjs';
import {
  button,
  complain,
  heading,
  inspect,
  open,
  OPERATOR,
  PASSWORD,
  phone,
  PORTAL,
  run,
  settled,
  signIn,
  step,
  tolerate,
  wide,
} from './harness.mjs';

const headers = { Authorization: `Bearer ${OPERATOR}`, 'Content-Type': 'application/json' };
async function ask(path) {
  const r = await fetch(PORTAL + path, { headers });
  assert.ok(r.ok, `${path}: ${r.status}`);
  return r.json();
}

const quiet = (page) => page.on('dialog', (d) => (complain(`a dialog of the browser: ${d.message()}`), d.dismiss()));
const page = await open({});
const operator = await open({});
quiet(page);
quiet(operator);
const total = { forms: 0, fields: 0 };
const coloured = new Set(); // kinds of forms, in a dialog or not, whose colours were looked at

/** form is one of a page, behind a button where its dialog has one. */
const form = (path, title, { behind, submit, least, takes, prepare }) => ({
  path,
  title,
  behind,
  submit,
  least,
  takes,
  prepare,
});

async function visit(p, forms) {
  for (const { path, title, behind, submit, least, takes, prepare } of forms) {
    const what = `${path}${behind ? `, ${behind}` : ''}`;
    const begin = async () => {
      await p.goto(`${PORTAL}/#/nowhere`); // the same address again is no navigation, and the page before may have the same title
      await heading(p, 'Page not found');
      await p.goto(`${PORTAL}/#${path}`);
      await heading(p, title);
      if (behind) {
        const b = p.getByRole('main').getByRole('button', { name: behind, exact: true }).first();
        await b.click();
        await p.getByRole('dialog').waitFor();
      }
      await prepare?.(p, p.getByRole('dialog'));
    };
    const found = await attackForm(p, { what, open: begin, submit, least, takes });
    total.fields += found; // two visits count side by side
    total.forms++;
    // What a form says it says in the same colours on every page, and in every dialog.
    const by = coloured.has(Boolean(behind)) ? 'structure' : 'all';
    coloured.add(Boolean(behind));
    await inspect(
      p,
      `hostile${path.replaceAll(/[^a-z]+/g, '-')}${behind ? `-${behind.toLowerCase().replaceAll(/[^a-z]+/g, '-')}` : ''}`,
      by,
    );
  }
}

const choose = (of, action) => async (p) => {
  await button(p, `Actions: ${of}`).click();
  await p.getByRole('menuitem', { name: action, exact: true }).click();
  await p.getByRole('dialog').waitFor();
};

step('sign in, as an organization’s administrator and as an operator', async () => {
  await page.goto(PORTAL);
  await signIn(page);
  await heading(page, 'Dashboard');
  await operator.goto(PORTAL);
  await signIn(operator, PASSWORD, 'op@example.com');
  await heading(operator, 'Dashboard');
});

async function tenantsForms() {
  const { meta } = await ask('/v1/security-groups/default?project=render');
  const { meta: instance } = await ask('/v1/instances/web-1?project=render');
  await visit(page, [
    form('/instances', 'Instances', { least: 1 }),
    form(`/instances/${instance.id}`, 'web-1', { behind: 'Edit', submit: 'Save', least: 1 }),
    form('/instances/new', 'Create instance', {
      submit: 'Create',
      least: 3,
      prepare: async (p) => {
        await p.getByLabel('Image or app').selectOption('image:debian-12');
        await p.getByLabel('Flavor').selectOption('tiny');
      },
    }),
    form('/volumes', 'Volumes', { behind: 'Create volume', submit: 'Create', least: 1 }),
    form('/volumes', 'Volumes', { submit: 'Create snapshot', least: 1, prepare: choose('data', 'Create snapshot') }),
    form('/volumes', 'Volumes', { least: 1, prepare: choose('data', 'Delete') }),
    form('/networks', 'Networks', { behind: 'Create network', submit: 'Create', least: 4 }),
    form('/networks', 'Networks', { submit: 'Run check', least: 3 }),
    form('/security-groups', 'Security groups', { behind: 'Create security group', submit: 'Create', least: 1 }),
    form(`/security-groups/${meta.id}`, 'default', {
      submit: 'Save rules',
      least: 2,
      prepare: async (p) => {
        const n = await p.getByRole('button', { name: /^Remove rule / }).count();
        await button(p, 'Add rule').click();
        await p.locator(`#rule-${n}-remote`).selectOption('cidr');
      },
    }),
    form('/floating-ips', 'Floating IPs', { behind: 'Allocate floating IP', submit: 'Allocate floating IP', least: 1 }),
    form('/load-balancers', 'Load balancers', { behind: 'Create load balancer', submit: 'Create', least: 1 }),
    form('/keys', 'API keys', { behind: 'Create API key', submit: 'Create', least: 1 }),
    form('/members', 'Members', { behind: 'Add member', submit: 'Add', least: 1 }),
    form('/projects', 'Projects', { behind: 'Create project', submit: 'Create', least: 2 }),
    form('/projects', 'Projects', { submit: 'Save', least: 2, prepare: choose('render', 'Edit') }),
    form('/groups', 'Groups', { behind: 'Create group', submit: 'Create group', least: 3 }),
    form('/groups', 'Groups', { behind: 'Connect a directory', submit: 'Create', least: 1 }),
    form('/audit', 'Audit log', { submit: 'Apply filters', least: 4, takes: true }),
    form('/account', 'Your account', { least: 2 }), // nothing is sent: the wrong password too often locks one out
    form('/images', 'Images and apps', {
      behind: 'Import image',
      submit: 'Import',
      least: 3,
      prepare: (p) => p.locator('#image-url').check(),
    }),
  ]);
}

async function operatorsForms() {
  const { meta: acme } = await ask('/v1/organizations/acme');
  const { meta: book } = await ask('/v1/price-books/default');
  const of = `/organizations/${acme.id}`;
  await visit(operator, [
    form('/organizations', 'Organizations', { behind: 'Create organization', submit: 'Create', least: 2 }),
    form(of, 'acme', {
      behind: 'Edit',
      submit: 'Save',
      least: 4,
      prepare: (p, d) => d.getByLabel('Billing').selectOption('invoice'),
    }),
    form(`${of}/projects`, 'acme', { behind: 'Create project', submit: 'Create', least: 2 }),
    form(`${of}/people`, 'acme', { behind: 'Add administrator', submit: 'Add', least: 1 }),
    form(`${of}/quota`, 'acme', { submit: 'Save', least: 7 }),
    form(`${of}/money`, 'acme', { behind: 'Record payment', submit: 'Record', least: 3 }),
    form(`${of}/budgets`, 'acme', { behind: 'Create budget', submit: 'Create', least: 3 }),
    form('/prices', 'Price books', { behind: 'Create price book', submit: 'Create', least: 2 }),
    form(`/prices/${book.id}`, 'default', {
      submit: 'Save prices',
      least: 15,
      prepare: async (p) => {
        for (const add of ['Add discount', 'Add commitment']) await button(p, add).click();
      },
    }),
    form('/tax-settings', 'Taxes', {
      submit: 'Save',
      least: 8,
      prepare: (p) => button(p, 'Add rate').click(),
    }),
    form('/identity-providers/new/oidc', 'Add OpenID Connect provider', {
      submit: 'Create',
      least: 9,
      prepare: (p) => button(p, 'Add role').click(),
    }),
    form('/identity-providers/new/saml', 'Add SAML provider', { submit: 'Create', least: 8 }),
    form('/branding', 'Branding', { submit: 'Save', least: 4 }),
    form('/setup/you', 'Set up the cluster', { least: 2 }),
    form('/setup/customer', 'Set up the cluster', { submit: 'Create customer', least: 4 }),
    form('/pools', 'GPU pools', { behind: 'Create GPU pool', submit: 'Create', least: 1 }),
    form('/images/apps', 'Images and apps', { behind: 'Create app', submit: 'Create', least: 9 }),
    form('/images/apps', 'Images and apps', { behind: 'Edit: notebook', submit: 'Save', least: 9 }),
    form('/images/flavors', 'Images and apps', { behind: 'Create flavor', submit: 'Create', least: 1 }),
    form('/storage/backups', 'Storage', { behind: 'Add backup target', submit: 'Create', least: 3 }),
    form('/storage/backups', 'Storage', {
      behind: 'Add backup target',
      submit: 'Create',
      least: 7,
      prepare: (p) => p.locator('#target-is-s3').check(),
    }),
    form('/network-health', 'External networks', { behind: 'Add external network', submit: 'Create', least: 8 }),
    form('/all-instances', 'All instances', { least: 1 }),
  ]);
}

step('the forms of a tenant and of an operator, side by side', async () => {
  tolerate('400', '403', '404', '409', '413', '422', '429', '503');
  await Promise.all([tenantsForms(), operatorsForms()]);
  tolerate();
  console.log(`     ${total.forms} forms, ${total.fields} fields of text`);
});

step('who is not signed in', async () => {
  const p = await open({});
  quiet(p);
  const at = async (path) => (await p.goto('about:blank'), await p.goto(`${PORTAL}/#${path}`));
  tolerate('400', '401', '404', '429');
  await attackForm(p, {
    what: 'sign in',
    open: async () => (await at('/'), heading(p, 'Sign in')),
    submit: 'Sign in',
    least: 2,
  });
  await attackForm(p, {
    what: 'the link’s password',
    open: async () => (await at('/password?token=bslt_x'), p.locator('input[type=password]').first().waitFor()),
    least: 1,
  });
  tolerate();
  await p.context().close();
});

// What free texts are stored as.
const markup = '<img src=x onerror="window.pwned=1"><b>bold</b>';
const backwards = '\u202egnp.exe \u2066x';
const endless = 'W'.repeat(63);

step('free texts are stored, and shown as text', async () => {
  const p = operator;
  const d = p.getByRole('dialog');
  const main = p.getByRole('main');
  const send = async (name) => {
    await d.getByRole('button', { name, exact: true }).click();
    await d.waitFor({ state: 'detached' });
  };
  const go = async (path, title) => (await p.goto(`${PORTAL}/#${path}`), await heading(p, title));
  const { meta } = await ask('/v1/organizations/acme');
  await go(`/organizations/${meta.id}`, 'acme');
  await button(p, 'Edit').click();
  await d.getByLabel('Display name').fill(markup);
  await d.getByLabel('Billing').selectOption('invoice');
  await d.getByLabel('Billing address').fill(`${markup}\n${endless}`);
  await d.locator('#edit-tax').fill('"><script>window.pwned=1</script>');
  await send('Save');
  await button(p, 'Suspend').click();
  await d.getByLabel('Reason').fill(`${markup} ${endless}`);
  await send('Suspend');
  await main.getByText(`${markup} ${endless}`).first().waitFor();
  await harmless(p, 'an organization');
  await button(p, 'Resume').click();
  await p.getByRole('status', { name: 'State' }).getByText('Active').waitFor();
  await go(`/organizations/${meta.id}/money`, 'acme');
  await main.getByRole('button', { name: 'Record payment' }).click();
  await d.getByLabel('Amount (EUR)').fill('1');
  await d.getByLabel('Reference').fill(markup);
  await d.getByLabel('Note').fill(`${backwards} ${endless}`);
  await send('Record');
  await main.getByRole('gridcell', { name: markup }).waitFor();
  await go('/images/apps', 'Images and apps');
  await button(p, 'Edit: notebook').click();
  await p.locator('#app-displayName').fill('<img src=x onerror=pwned=1>');
  await p.locator('#app-category').fill('<b>bold</b>');
  await p.locator('#app-userData').fill(`#cloud-config\n# ${markup}\n`);
  for (const f of ['description', 'notes']) await p.locator(`#app-${f}`).fill(`${markup} ${endless}`);
  await send('Save');
  await main.getByText(`${markup} ${endless}`).first().waitFor();
  const { meta: book } = await ask('/v1/price-books/default');
  await go(`/prices/${book.id}`, 'default');
  await p.locator('#book-seller').fill(markup);
  await p.locator('#book-address').fill(`${markup}\n${endless}`);
  await button(p, 'Save prices').click();
  await main.getByText('Prices saved.').waitFor();
});

step('branding: a name is text, and an address is one of a page', async () => {
  const p = operator;
  await p.goto(`${PORTAL}/#/branding`);
  await heading(p, 'Branding');
  for (const url of [
    'javascript:window.pwned=1',
    'data:text/html,<script>window.pwned=1</script>',
    'https://user:password@example.com/',
  ]) {
    tolerate('400');
    await p.locator('#brand-url').fill(url);
    await button(p, 'Save').click();
    await p.locator('#brand-url-help .pf-m-error').getByText('is not a valid URL of a page').waitFor();
  }
  tolerate();
  await p.locator('#brand-url').fill('https://help.example/?q="><script>window.pwned=1</script>');
  await p.locator('#brand-name').fill(`<i>GPU</i> \u202eduolC ${'W'.repeat(40)}`);
  await button(p, 'Save').click();
  await p.getByRole('banner').getByText('<i>GPU</i>').waitFor();
  await harmless(p, 'branding');
});

step('a tenant’s own texts', async () => {
  const d = page.getByRole('dialog');
  await page.goto(`${PORTAL}/#/projects`);
  await heading(page, 'Projects');
  await choose('render', 'Edit')(page);
  await d.locator('#proj-shown').fill(`${markup} ${endless}`);
  await d.getByRole('button', { name: 'Save', exact: true }).click();
  await d.waitFor({ state: 'detached' });
  await page.getByRole('gridcell', { name: `${markup} ${endless}` }).waitFor();
});

step('the pages that show them, also on a phone', async () => {
  const { meta } = await ask('/v1/organizations/acme');
  const { meta: book } = await ask('/v1/price-books/default');
  const shows = [
    [
      page,
      [
        '/',
        '/apps',
        '/instances',
        '/instances/new',
        '/projects',
        '/images/apps',
        '/usage',
        '/invoices',
        '/audit',
        '/volumes',
      ],
    ],
    [
      operator,
      [
        '/',
        '/organizations',
        `/organizations/${meta.id}`,
        `/organizations/${meta.id}/projects`,
        `/organizations/${meta.id}/money`,
        '/prices',
        `/prices/${book.id}`,
        '/images/apps',
        '/all-instances',
        '/branding',
        '/mail',
        '/setup/brand',
        '/revenue',
        '/audit',
      ],
    ],
  ];
  const show = async ([p, paths]) => {
    for (const path of paths) {
      await p.goto(`${PORTAL}/#${path}`);
      await p.getByRole('heading', { level: 1 }).first().waitFor();
      for (const [size, what] of [
        [wide, 'wide'],
        [phone, 'phone'],
      ]) {
        await p.setViewportSize(size);
        await settled(p);
        await harmless(p, `${path}, stored, ${what}`);
        // Their colours are looked at by the stories of these pages.
        await inspect(
          p,
          `stored${path.replaceAll(/[^a-z]+/g, '-')}-${p === page ? 'tenant' : 'operator'}-${what}`,
          'structure',
        );
      }
    }
  };
  await Promise.all(shows.map(show));
  const out = await open({});
  quiet(out);
  await out.goto(PORTAL);
  await heading(out, 'Sign in');
  await out.getByText('<i>GPU</i>').first().waitFor();
  await harmless(out, 'sign in, branded');
  await inspect(out, 'stored-sign-in');
});

await run();
