// TypeScript types of the API from its description, when it has changed.
import { execFileSync } from 'node:child_process';
import { statSync } from 'node:fs';

const at = (path) => new URL(path, import.meta.url).pathname;
const time = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

export function types() {
  const [from, to] = [at('../../api/openapi.yaml'), at('../src/api/schema.d.ts')];
  if (time(to) <= Math.max(time(from), time(at('../package-lock.json'))))
    execFileSync(at('../node_modules/.bin/openapi-typescript'), [from, '-o', to], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
}

if (process.argv[1] === at('types.mjs')) types();
