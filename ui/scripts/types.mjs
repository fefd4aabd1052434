// Generates the TypeScript types of the API and the constraints of its bodies from its description, when that has
// changed.
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import openapiTS, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { constraints } from './constraints.mjs';

const at = (path) => new URL(path, import.meta.url).pathname;
const time = (path) => statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;

/** transform gives texts that have a cause a type that pages cannot show: only parts/told.tsx turns them into words. */
const transform = (schema) => ('x-cause' in schema ? ts.factory.createTypeReferenceNode('CauseText') : undefined);
const inject = "import type { CauseText } from './cause-text';\n\n";

export async function types() {
  const from = at('../../api/openapi.yaml');
  const since = Math.max(
    time(from),
    ...['../package-lock.json', 'constraints.mjs', 'types.mjs'].map((path) => time(at(path))),
  );
  const [schema, limits] = [at('../src/api/schema.d.ts'), at('../src/api/constraints.json')];
  if (time(schema) <= since)
    writeFileSync(schema, astToString(await openapiTS(new URL(`file://${from}`), { transform, inject, silent: true })));
  if (time(limits) <= since) writeFileSync(limits, JSON.stringify(constraints(readFileSync(from, 'utf8'))));
}

if (process.argv[1] === at('types.mjs')) await types();
