// Checks format, the API's description, types, lint and component tests. If all pass, it records that in the folder
// in its argument, if there is one (installer/dev/cache.sh).
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ESLint } from 'eslint';
import ts from 'typescript';
import { types } from './types.mjs';

const root = new URL('../', import.meta.url).pathname;
const fail = (name) => {
  console.error(`ui: ${name} failed`);
  process.exit(1);
};

/** program returns the program of tsconfig.json with its types. Type errors end the check. */
function program() {
  const host = { getCanonicalFileName: (f) => f, getCurrentDirectory: () => root, getNewLine: () => '\n' };
  const unreadable = (d) => (console.error(ts.formatDiagnostic(d, host)), fail('tsc'));
  const { options, fileNames, errors } = ts.getParsedCommandLineOfConfigFile(
    join(root, 'tsconfig.json'),
    {},
    { ...ts.sys, onUnRecoverableConfigFileDiagnostic: unreadable },
  );
  const made = ts.createProgram(fileNames, options);
  const found = [...errors, ...ts.getPreEmitDiagnostics(made)];
  if (found.length > 0) {
    console.error(ts.formatDiagnosticsWithColorAndContext(found, host));
    fail('tsc');
  }
  return made;
}

/** lint uses the types of a program: computing them again would take most of the check's time. */
async function lint(typed) {
  const typedFiles = {
    files: ['src/**/*.{ts,tsx}'],
    languageOptions: { parserOptions: { projectService: false, programs: [typed] } },
  };
  const eslint = new ESLint({ cwd: root, overrideConfig: typedFiles });
  const results = await eslint.lintFiles('.');
  const report = await (await eslint.loadFormatter('stylish')).format(results);
  if (report) console.error(report);
  if (results.some((r) => r.errorCount > 0)) fail('eslint');
}

/** run runs a program of node_modules; a failure ends the check. */
function run(name, ...args) {
  try {
    execFileSync(`${root}node_modules/.bin/${name}`, args, { cwd: root, stdio: 'inherit' });
  } catch {
    fail(name);
  }
}

run('prettier', '--check', '--log-level=warn', '.'); // npm run format
run('spectral', 'lint', '--quiet', '--fail-severity=hint', '--ruleset=../api/.spectral.yaml', '../api/openapi.yaml');
await types();
await lint(program());
run('vitest', 'run', '--reporter=dot');
if (process.argv[2]) writeFileSync(join(process.argv[2], 'portal-checked'), '');
