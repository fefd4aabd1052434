// Builds the portal into dist, or into the dist of the folder in its argument (installer/dev/cache.sh): types from
// the API's description, Vite's bundle, the licenses of the bundled packages, and every file compressed, with gzip
// and for most browsers with Brotli. basaltd embeds only the compressed files, and decompresses them for the rare
// client that accepts neither.
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { licenses } from './licenses.mjs';
import { largestRoute } from './routes.mjs';
import { types } from './types.mjs';

const root = new URL('../', import.meta.url).pathname;
const kept = '.gitignore'; // the committed file of dist
const dist = process.argv[2] ? resolve(process.argv[2], 'dist') : join(root, 'dist');
mkdirSync(dist, { recursive: true });
for (const name of readdirSync(dist)) if (name !== kept) rmSync(join(dist, name), { recursive: true });
if (process.argv[2]) copyFileSync(join(root, 'dist', kept), join(dist, kept));

types();
const manifest = 'manifest.json'; // for the sizes of the routes; not served
const vite = ['build', '--logLevel', 'warn', '--manifest', manifest, '--outDir', dist];
execFileSync(join(root, 'node_modules/.bin/vite'), vite, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'] });
const largest = largestRoute(dist, JSON.parse(readFileSync(join(dist, manifest), 'utf8')));
rmSync(join(dist, manifest));
writeFileSync(join(dist, 'licenses.txt'), licenses());

let total = 0;
for (const e of readdirSync(dist, { recursive: true, withFileTypes: true })) {
  if (!e.isFile() || e.name === kept) continue;
  const path = join(e.parentPath, e.name);
  const plain = readFileSync(path);
  writeFileSync(`${path}.gz`, gzipSync(plain, { level: 9 }));
  const packed = brotliCompressSync(plain, { params: { [constants.BROTLI_PARAM_SIZE_HINT]: plain.length } });
  // Files that are already compressed, such as fonts, do not get smaller.
  if (packed.length < plain.length * 0.95) writeFileSync(`${path}.br`, packed);
  rmSync(path);
  total += packed.length;
}
console.log(`ui: built ui/dist, ${Math.round(total / 1024)} KiB compressed`);
console.log(`ui: the largest route is ${largest.page}: ${largest.bytes} bytes of code in ${largest.files} files`);
