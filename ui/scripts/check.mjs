// Types, lint and component tests. That all have passed is noted in the folder
// that is its argument, if there is one (installer/dev/cache.sh).
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { types } from './types.mjs';

const root = new URL('../', import.meta.url).pathname;
const run = (name, ...args) => {
  try {
    execFileSync(`${root}node_modules/.bin/${name}`, args, { cwd: root, stdio: 'inherit' });
  } catch {
    console.error(`ui: ${name} failed`);
    process.exit(1);
  }
};

types();
run('tsc');
run('eslint', '.');
run('vitest', 'run', '--reporter=dot');
if (process.argv[2]) writeFileSync(join(process.argv[2], 'portal-checked'), '');
