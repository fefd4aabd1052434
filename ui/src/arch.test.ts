// Checks the imports between the folders of src against README.md, as appliance/cmd/arch_test.go does for Go's
// packages.
import { expect, test } from 'vitest';

interface Rule {
  allow: readonly string[];
  why: string;
}

/** What each folder may import of the others. Files outside the folders connect them, and may not be imported. */
const rules: Record<string, Rule> = {
  i18n: { allow: [], why: 'texts, which know nothing of who shows them' },
  api: { allow: [], why: 'what the server says, which everybody may ask for' },
  lib: { allow: ['api', 'i18n'], why: 'pure functions of what the server says, and the keys of the texts for it' },
  parts: { allow: ['api', 'i18n', 'lib'], why: 'what pages are made of, which does not know the pages' },
  forms: { allow: ['api', 'i18n', 'lib', 'parts'], why: 'forms that several pages share' },
  shell: {
    allow: ['api', 'i18n', 'lib', 'parts'],
    why: 'the frame around pages; app.tsx hands it the page and the addresses',
  },
  pages: {
    allow: ['api', 'i18n', 'lib', 'parts', 'forms'],
    why: 'routes.tsx loads them; none knows the frame around it',
  },
};

const sources = import.meta.glob<string>('./**/*.{ts,tsx}', { query: '?raw', import: 'default', eager: true });
const imported = /(?:\bfrom\s*|\bimport\s*\(?\s*)'(\.[^']*)'/g;

/** folderOf returns the folder of a path below src; '' is src itself. i18n is imported by its folder's name. */
const folderOf = (path: string) => /^([^/]+)(?:\/|$)/.exec(path.includes('/') || path in rules ? path : '')?.[1] ?? '';

/** resolve turns an import of a file at path into a path below src. */
const resolve = (path: string, name: string) => new URL(name, `file:///${path}`).pathname.slice(1);

/** faults lists the imports of a file that its folder may not have. */
function faults(path: string, text: string): string[] {
  const from = folderOf(path);
  const rule = rules[from];
  if (from === '') return []; // files outside the folders may import everything
  if (!rule) return [`${path} is in a folder without a rule`];
  return [...text.matchAll(imported)]
    .map((m) => resolve(path, m[1] ?? ''))
    .filter((to) => folderOf(to) !== from && !rule.allow.includes(folderOf(to)))
    .map((to) => `${path} imports ${to}, but ${from} may import only [${rule.allow.join(', ')}]: ${rule.why}`);
}

test('folders import only what their rules allow', () => {
  const paths = Object.keys(sources);
  expect(paths.length).toBeGreaterThan(200);
  expect(paths.flatMap((p) => faults(p.slice('./'.length), sources[p] ?? ''))).toEqual([]);
});

test('a folder may import only those whose rules stand above its own, so there is no circle', () => {
  const order = Object.keys(rules);
  for (const [folder, { allow }] of Object.entries(rules))
    expect(
      allow.filter((a) => !order.slice(0, order.indexOf(folder)).includes(a)),
      folder,
    ).toEqual([]);
});

test('an import against the arrows is found, however it is written', () => {
  expect(faults('api/x.ts', "import { routes } from '../routes';")).toHaveLength(1);
  expect(faults('lib/x.ts', "import '../parts/page';")).toHaveLength(1);
  expect(faults('parts/x.tsx', "const Late = lazy(() => import('../pages/usage'));")).toHaveLength(1);
  expect(faults('pages/a/x.tsx', "export type {\n  A,\n} from '../../shell/shell';")).toHaveLength(1);
  expect(faults('api/x.ts', "type Key = import('../i18n').Key;")).toHaveLength(1);
  expect(faults('new/x.ts', '')).toHaveLength(1);
  expect(
    faults('pages/a/x.tsx', "import { useText } from '../../i18n';\nimport { api } from '../../api/client';"),
  ).toEqual([]);
});
