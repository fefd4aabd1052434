// Generates the TypeScript types of the API and the constraints of its bodies from its description, when that has
// changed.
import { execFileSync } from 'node:child_process';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { constraints } from './constraints.mjs';

const at = (path) => new URL(path, import.meta.url).pathname;
const time = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

export function types() {
  const from = at('../../api/openapi.yaml');
  const since = Math.max(time(from), time(at('../package-lock.json')), time(at('constraints.mjs')));
  const [schema, limits] = [at('../src/api/schema.d.ts'), at('../src/api/constraints.json')];
  if (time(schema) <= since)
    execFileSync(at('../node_modules/.bin/openapi-typescript'), [from, '-o', schema], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });
  if (time(limits) <= since) writeFileSync(limits, JSON.stringify(constraints(readFileSync(from, 'utf8'))));
}

if (process.argv[1] === at('types.mjs')) types();
