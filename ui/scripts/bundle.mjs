// Bundles the portal in two passes. The first one's files have only modules that the same pages need: they show which
// page needs what, and how large it is. grouping.mjs decides which of them are put together, and the second pass does
// that.
import { brotliCompressSync, constants } from 'node:zlib';
import { build } from 'vite';
import { merge, order } from './grouping.mjs';
import { dashboard, loads, routes, signIn } from './routes.mjs';

/** What users see first: a byte of it counts as much as one of so many other routes. */
const isFirst = (route) => [signIn, dashboard].some((entry) => route.entries.includes(entry));
const firstWeight = 10;

/** A file has about this share of the bytes of the parts that were put together in it, as it compresses better. */
const together = 0.9;

/** A file of the bundler's own code, which is in no group. */
const runtimeFiles = 1;

/** Good for a comparison of sizes, in a tenth of the time of the highest. */
const quickQuality = 9;

/** chunksOf returns the chunks of a bundle, for routes.mjs. Their sizes are those of a quality of Brotli. */
function chunksOf(output, root, quality = constants.BROTLI_MAX_QUALITY) {
  const compressed = (code) =>
    brotliCompressSync(code, { params: { [constants.BROTLI_PARAM_QUALITY]: quality } }).length;
  const styles = new Map(
    output.filter((o) => o.fileName.endsWith('.css')).map((o) => [o.fileName, compressed(o.source)]),
  );
  return output
    .filter((o) => o.type === 'chunk')
    .map((c) => ({
      file: c.fileName,
      bytes: compressed(c.code),
      entry: c.isEntry || c.isDynamicEntry ? c.facadeModuleId?.replace(root, '') : undefined,
      imports: c.imports,
      later: c.dynamicImports,
      styles: [...c.viteMetadata.importedCss].map((file) => ({ file, bytes: styles.get(file) })),
      modules: Object.keys(c.modules),
    }));
}

/**
 * partsOf returns what merge puts together: code and styles, apart. The files of entries remain: if they were put
 * together, the bundler would add files that lead to them.
 */
function partsOf(chunks) {
  const code = chunks.map((c) => ({
    name: c.file,
    bytes: c.bytes,
    imports: [...c.imports, ...c.styles.map((s) => s.file)],
    kind: c.entry === undefined ? 'code' : undefined,
  }));
  const styles = new Map(chunks.flatMap((c) => c.styles).map((s) => [s.file, s.bytes]));
  return [...code, ...[...styles].map(([name, bytes]) => ({ name, bytes, imports: [], kind: 'style' }))];
}

/** groupsOf returns the name of the group of each module of the first pass; code of entries has none. */
function groupsOf(chunks, groups) {
  const group = new Map(groups.flatMap((parts, n) => parts.map((part) => [part, `part${n}`])));
  const of = (chunk, id) => group.get(id.endsWith('.css') ? chunk.styles[0]?.file : chunk.file);
  return new Map(chunks.flatMap((c) => c.modules.map((id) => [id, of(c, id)])));
}

/** bundle builds the portal of the folder root into dist, and returns its chunks and routes. */
export async function bundle(root, dist) {
  const common = { root, logLevel: 'warn' };
  const { output } = await build({ ...common, build: { write: false } });
  const chunks = chunksOf(output, root, quickQuality);
  const all = routes(chunks);
  const pages = all.map((r) => ({
    name: r.name,
    parts: loads(chunks, r).map((f) => f.file),
    most: { files: r.most.files - runtimeFiles, bytes: r.most.bytes / together },
    weight: isFirst(r) ? firstWeight : 1,
  }));
  const groups = merge(partsOf(chunks), pages);
  const names = groupsOf(chunks, groups);
  const group = { name: (id) => names.get(id), debugName: 'parts', includeDependenciesRecursively: false };
  const rolldownOptions = { output: { codeSplitting: { groups: [group] } } };
  const built = await build({ ...common, build: { outDir: dist, rolldownOptions } });
  const files = chunksOf(built.output, root);
  // Files that import each other could run before what they need has run.
  order(files.map((c) => ({ ...c, name: c.file })));
  return { chunks: files, routes: all };
}
