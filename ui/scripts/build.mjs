// Builds the portal into dist, or into the dist of the folder in its argument (installer/dev/cache.sh): types from
// the API's description, Vite's bundle, the licenses of the bundled packages, and every file compressed, with gzip
// and for most browsers with Brotli. basaltd embeds only the compressed files, and decompresses them for the rare
// client that accepts neither.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { bundle } from './bundle.mjs';
import { licenses } from './licenses.mjs';
import { largestRoutes } from './routes.mjs';
import { types } from './types.mjs';

const root = new URL('../', import.meta.url).pathname;
const kept = '.gitignore'; // the committed file of dist
const dist = process.argv[2] ? resolve(process.argv[2], 'dist') : join(root, 'dist');
mkdirSync(dist, { recursive: true });
for (const name of readdirSync(dist)) if (name !== kept) rmSync(join(dist, name), { recursive: true });
if (process.argv[2]) copyFileSync(join(root, 'dist', kept), join(dist, kept));

await types();
const { chunks, routes } = await bundle(root, dist);
const largest = largestRoutes(chunks, routes);
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
for (const { name, files, bytes } of new Set([largest.files, largest.bytes]))
  console.log(`ui: at most ${files} files of code with ${bytes} bytes: ${name}`);
