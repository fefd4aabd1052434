// The licenses of the packages in the bundle: all transitive dependencies of the portal, and those of PatternFly's
// fonts.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const root = new URL('../', import.meta.url).pathname;
const json = (path) => JSON.parse(readFileSync(path, 'utf8'));

function closure() {
  const lock = json(join(root, 'package-lock.json')).packages;
  const seen = new Set();
  const find = (from, name) => {
    for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
      const path = `${at ? `${at}/` : ''}node_modules/${name}`;
      if (lock[path]) return path;
      if (!at) return undefined;
    }
  };
  const visit = (from, names) => {
    for (const name of Object.keys(names ?? {})) {
      const path = find(from, name);
      if (!path || seen.has(path)) continue;
      seen.add(path);
      visit(path, lock[path].dependencies);
    }
  };
  visit('', lock[''].dependencies);
  return [...seen].sort();
}

export function licenses() {
  const out = ['The portal is part of Basalt, under the Apache License 2.0. It holds these packages:\n'];
  for (const path of closure()) {
    const dir = join(root, path);
    if (!existsSync(dir)) continue;
    const { name, version, license } = json(join(dir, 'package.json'));
    if (name.startsWith('@types/')) continue;
    if (!license) throw new Error(`${name}: no license`);
    const file = readdirSync(dir).find((f) => /^(licen[sc]e|copying)/i.test(f));
    out.push(`${'='.repeat(72)}\n${name} ${version}: ${license}\n`, file ? readFileSync(join(dir, file), 'utf8') : '');
  }
  out.push(
    `${'='.repeat(72)}\nThe fonts Red Hat Text, Red Hat Display and Red Hat Mono, in PatternFly: SIL Open Font License 1.1\n`,
    'Copyright 2021 Red Hat, Inc. (https://github.com/RedHatOfficial/RedHatFont), with Reserved Font Name Red Hat.\n',
  );
  return out.join('\n');
}
