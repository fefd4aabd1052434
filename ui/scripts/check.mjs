// Types, lint and component tests, each quick.
import { execFileSync } from 'node:child_process';
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
