// Builds the portal into dist: types from the API's description, Vite's bundle,
// the licences of what is in it, and every file compressed, for most browsers
// with Brotli. basaltd embeds the compressed files only, and unpacks them for the
// rare client that asks so.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { licenses } from './licenses.mjs';
import { types } from './types.mjs';

const dist = new URL('../dist/', import.meta.url).pathname;
for (const name of readdirSync(dist)) if (name !== '.gitignore') rmSync(join(dist, name), { recursive: true });

const bin = new URL('../node_modules/.bin/', import.meta.url).pathname;
const run = (name, ...args) => execFileSync(join(bin, name), args, { stdio: ['ignore', 'ignore', 'inherit'] });
types();
run('vite', 'build', '--logLevel', 'warn');
writeFileSync(join(dist, 'licenses.txt'), licenses());

let total = 0;
for (const e of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!e.isFile() || e.name === '.gitignore') continue;
  const path = join(e.parentPath, e.name);
  const plain = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
  const packed = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } });
  // What is compressed already, as fonts are, gains nothing.
  if (packed.length < plain.length * 0.95) writeFileSync(`${path}.br`, packed);
  rmSync(path);
  total += packed.length;
}
console.log(`ui: built ui/dist, ${Math.round(total / 1024)} KiB compressed`);
