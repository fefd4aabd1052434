// How much code each route loads at most, when nothing is in the browser's cache: what the page imports, the frame and
// the styles, compressed with Brotli; without fonts and pictures, and without what it loads later.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync } from 'node:zlib';

/** most is the limit of a route's code, in bytes. */
const most = 350_000;

/** largestRoute returns the largest route of a build, by Vite's manifest; it throws if it is above the limit. */
export function largestRoute(dist, manifest) {
  const sizes = new Map();
  const size = (file) => {
    if (!sizes.has(file)) sizes.set(file, brotliCompressSync(readFileSync(join(dist, file))).length);
    return sizes.get(file);
  };
  const files = (entry, found = new Set()) => {
    const { file, css = [], imports = [] } = manifest[entry];
    if (found.has(file)) return found;
    [file, ...css].forEach((f) => found.add(f));
    imports.forEach((i) => files(i, found));
    return found;
  };
  const frame = ['index.html', 'src/shell/shell.tsx'].flatMap((entry) => [...files(entry)]);
  const routes = Object.keys(manifest).filter((e) => manifest[e].isDynamicEntry && e.startsWith('src/pages/'));
  const [largest] = routes
    .map((page) => {
      const all = [...new Set([...frame, ...files(page)])];
      return { page, files: all.length, bytes: all.reduce((n, f) => n + size(f), 0) };
    })
    .sort((a, b) => b.bytes - a.bytes);
  if (!largest) throw new Error(`${dist} has no pages`);
  if (largest.bytes > most)
    throw new Error(`${largest.page} loads ${largest.bytes} bytes of code, at most ${most}: load parts of it later`);
  return largest;
}
