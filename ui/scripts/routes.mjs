// What the portal's routes load when nothing is in the browser's cache.

/** most is what a route may load: files of code and styles, and their bytes, compressed with Brotli. */
const most = { files: 20, bytes: 350_000 };

/** What users load first is smaller. */
const mostSignIn = { ...most, bytes: 235_000 };
const mostDashboard = { ...most, bytes: 250_000 };
const mostCards = { ...most, bytes: 290_000 };

/** With a part that a page loads later, such as a console: that may be as large as it must. */
const mostLater = { ...most, bytes: Infinity };

const start = 'index.html';
const shell = 'src/shell/shell.tsx';
export const signIn = 'src/pages/sign-in.tsx';
export const dashboard = 'src/pages/dashboard/dashboard.tsx';
/** The words of a language: of the pages that users load first, and of all others. */
const wordsEntry = /^src\/i18n\/(\w+)\/(first|later)\.ts$/;
const isWords = (chunk) => wordsEntry.test(chunk.entry ?? '');

/**
 * A file of the bundle with code.
 * @typedef {object} Chunk
 * @property {string} file
 * @property {number} bytes its size, compressed
 * @property {string} [entry] the module for which it is loaded
 * @property {string[]} imports files that are loaded with it
 * @property {string[]} later files that it may load later
 * @property {{file: string, bytes: number}[]} styles
 */

const entryOf = (chunks, name) => {
  const found = chunks.find((c) => c.entry === name);
  if (!found) throw new Error(`the bundle has no file for ${name}`);
  return found;
};

/** closure returns some chunks and all that they import. */
function closure(chunks, from) {
  const byFile = new Map(chunks.map((c) => [c.file, c]));
  const found = new Set();
  const visit = (chunk) => {
    if (found.has(chunk)) return;
    found.add(chunk);
    chunk.imports.forEach((file) => visit(byFile.get(file)));
  };
  from.forEach(visit);
  return found;
}

/**
 * words returns the entries of the words of the language for which most is loaded: for the pages that users load first,
 * and for others. The first ones of a language may come with the code, without an entry.
 * @param {Chunk[]} chunks
 */
function words(chunks) {
  const parts = chunks.filter(isWords).map((c) => ({ ...c, language: wordsEntry.exec(c.entry)[1] }));
  const largest = (some) => {
    const bytes = (of) => some.filter((p) => p.language === of).reduce((sum, p) => sum + p.bytes, 0);
    const [language] = [...new Set(some.map((p) => p.language))].sort(
      (a, b) => bytes(b) - bytes(a) || (a < b ? -1 : 1),
    );
    return some.filter((p) => p.language === language).map((p) => p.entry);
  };
  return { first: largest(parts.filter((p) => p.entry.endsWith('first.ts'))), all: largest(parts) };
}

/**
 * routes returns what a browser can load for one address, as the names of entries, and the limits of that: the frame
 * with a page, also together with a part of the page that is loaded later. The dashboard shows all of these at once. Each
 * has the words of the largest language.
 * @param {Chunk[]} chunks of a bundle whose files have only modules that the same pages need
 */
export function routes(chunks) {
  const byFile = new Map(chunks.map((c) => [c.file, c]));
  const inFrame = closure(chunks, [entryOf(chunks, start), entryOf(chunks, shell)]);
  const laterOf = (some) => [...new Set([...some].flatMap((c) => c.later))].sort().map((file) => byFile.get(file));
  const { first: firstWords, all: allWords } = words(chunks);
  const route = (limits, page, parts = []) => {
    const entries = [page, ...parts].map((c) => c.entry);
    const spoken = limits === mostDashboard ? firstWords : allWords;
    return { name: entries.join(' with '), entries: [start, shell, ...entries, ...spoken], most: limits };
  };
  const ofPage = (page) => {
    const parts = laterOf([...closure(chunks, [page])].filter((c) => !inFrame.has(c)));
    if (page.entry === dashboard) return [route(mostDashboard, page), route(mostCards, page, parts)];
    return [route(most, page), ...parts.map((p) => route(mostLater, page, [p]))];
  };
  const pages = laterOf(inFrame).filter((c) => ![shell, signIn].includes(c.entry) && !isWords(c));
  return [{ name: signIn, entries: [start, signIn, ...firstWords], most: mostSignIn }, ...pages.flatMap(ofPage)];
}

/** loads returns the files of code and styles that a route loads, with their sizes. */
export function loads(chunks, route) {
  const code = closure(
    chunks,
    route.entries.map((name) => entryOf(chunks, name)),
  );
  const sizes = new Map([...code].flatMap((c) => [c, ...c.styles]).map((f) => [f.file, f.bytes]));
  return [...sizes].map(([file, bytes]) => ({ file, bytes }));
}

/** largestRoutes returns the routes with the most files and with the most bytes; it throws if one exceeds its limits. */
export function largestRoutes(chunks, all) {
  const sizes = all.map((route) => {
    const files = loads(chunks, route);
    return { ...route, files: files.length, bytes: files.reduce((sum, f) => sum + f.bytes, 0) };
  });
  for (const { name, files, bytes, most: limits } of sizes)
    if (files > limits.files || bytes > limits.bytes)
      throw new Error(
        `${name} loads ${files} files of code with ${bytes} bytes, at most ${limits.files} with ${limits.bytes}: ` +
          'load parts of it later',
      );
  const largest = (of, key) => of.reduce((a, b) => (b[key] > a[key] ? b : a));
  const limited = sizes.filter((s) => s.most !== mostLater);
  return { files: largest(sizes, 'files'), bytes: largest(limited, 'bytes') };
}
