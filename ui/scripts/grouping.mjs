// Decides which parts of the portal's code are put together in one file.
//
// A bundler puts those modules in one file that the same pages need. That loads no byte in vain, but it makes hundreds
// of small files, of which a page needs a hundred. merge puts files together until no page needs more than a given
// number, and prefers those that add the fewest bytes to what the pages load.

/**
 * A part of the code that is loaded as a whole.
 * @typedef {object} Part
 * @property {string} name
 * @property {number} bytes its size, compressed
 * @property {string[]} imports names of the parts without which it cannot run
 * @property {string} [kind] only parts of the same kind are put together; those without a kind remain as they are
 */

/**
 * A page, with all that is loaded before it can be used.
 * @typedef {object} Page
 * @property {string} name
 * @property {string[]} parts names of the parts that it loads; it also loads what these import
 * @property {{files: number, bytes: number}} most limits of what it loads
 * @property {number} [weight] how much its bytes count, compared with those of other pages (1)
 */

/**
 * A group of parts. Sets of groups and of pages are numbers: bit n is set if group or page n is a member.
 * @typedef {object} Group
 * @property {number} number
 * @property {string} [kind]
 * @property {string[]} names of its parts
 * @property {number} bytes
 * @property {bigint} imports groups that it imports
 * @property {bigint} reaches groups that it imports, directly or not
 * @property {bigint} pages pages that load it
 */

const bit = (n) => 1n << BigInt(n);

const kept = new Map();
/** members returns the numbers in a set. It keeps what it has returned, as the same sets occur again and again. */
function members(set) {
  const known = kept.get(set);
  if (known) return known;
  const digits = set.toString(2);
  const found = [];
  for (let at = digits.indexOf('1'); at >= 0; at = digits.indexOf('1', at + 1)) found.push(digits.length - 1 - at);
  kept.set(set, found);
  return found;
}

/** order returns parts so that each comes after those that it imports; it throws if one imports itself. */
export function order(parts) {
  const byName = new Map(parts.map((p) => [p.name, p]));
  if (byName.size < parts.length) throw new Error('two parts have the same name');
  const [begun, sorted] = [new Set(), new Set()];
  const visit = (name, by) => {
    const part = byName.get(name);
    if (!part) throw new Error(`${by} imports ${name}, which is not a part`);
    if (sorted.has(part)) return;
    if (begun.has(name)) throw new Error(`${name} imports itself, through ${by}`);
    begun.add(name);
    [...part.imports].sort().forEach((i) => visit(i, name));
    sorted.add(part);
  };
  [...byName.keys()].sort().forEach((name) => visit(name, name));
  return [...sorted];
}

/** Graph holds the groups, and knows which pages load each. At first each part is a group. */
class Graph {
  constructor(parts, pages) {
    const sorted = order(parts);
    const number = new Map(sorted.map((p, n) => [p.name, n]));
    /** @type {Group[]} those that were put into others are null */
    this.groups = sorted.map(({ name, kind, bytes, imports }, n) => {
      const direct = imports.reduce((set, i) => set | bit(number.get(i)), 0n);
      return { number: n, kind, names: [name], bytes, imports: direct, reaches: direct, pages: 0n };
    });
    for (const g of this.groups) for (const i of members(g.imports)) g.reaches |= this.groups[i].reaches;
    pages.forEach((page, n) => {
      for (const name of page.parts) {
        if (!number.has(name)) throw new Error(`page ${page.name} loads ${name}, which is not a part`);
        this.load(this.groups[number.get(name)], bit(n));
      }
    });
    this.count = pages.length;
  }

  get live() {
    return this.groups.filter((g) => g !== null);
  }

  /** load records that pages load a group and what it imports. */
  load(group, pages) {
    for (const n of members(group.reaches | bit(group.number))) this.groups[n].pages |= pages;
  }

  /** totals returns how many files and bytes each page loads. */
  totals() {
    const totals = Array.from({ length: this.count }, () => ({ files: 0, bytes: 0 }));
    for (const g of this.live)
      for (const n of members(g.pages)) {
        totals[n].files++;
        totals[n].bytes += g.bytes;
      }
    return totals;
  }

  /** circular reports whether two groups would import themselves, through others, if they were one. */
  circular(a, b) {
    const through = (from, to) =>
      members(from.imports & ~bit(to.number)).some((n) => this.groups[n].reaches & bit(to.number));
    return through(a, b) || through(b, a);
  }

  /** join puts group b into group a. All that load one of them then load what both import. */
  join(a, b) {
    const both = bit(a.number) | bit(b.number);
    const pages = a.pages | b.pages;
    a.names = [...a.names, ...b.names].sort();
    a.bytes += b.bytes;
    a.imports = (a.imports | b.imports) & ~both;
    a.reaches = (a.reaches | b.reaches) & ~both;
    this.groups[b.number] = null;
    for (const g of this.live) {
      if (g.imports & both) g.imports = (g.imports & ~both) | bit(a.number);
      if (g.reaches & both) g.reaches = (g.reaches & ~both) | bit(a.number) | a.reaches;
    }
    this.load(a, pages);
  }
}

const excess = (files, most) => Math.max(files - most, 0);

/** nearness returns how much more a byte costs the nearer a page is to its limit: at most a hundred times. */
const nearness = (bytes, most) => (most < Infinity ? most / Math.max(most - bytes, most / 100) : 1);

/** Mergers finds the best two groups to join. */
class Mergers {
  constructor(graph, pages) {
    this.graph = graph;
    this.limits = pages.map((p) => p.most);
    this.totals = graph.totals();
    this.weights = pages.map(({ weight = 1, most }, n) => weight * nearness(this.totals[n].bytes, most.bytes));
    this.above = this.totals.reduce((set, t, n) => (t.files > this.limits[n].files ? set | bit(n) : set), 0n);
  }

  weight(pages) {
    return members(pages).reduce((sum, n) => sum + this.weights[n], 0);
  }

  /** least returns a lower limit of price, for which what the groups import does not matter. */
  least(a, b) {
    const bytes = a.bytes * this.weight(b.pages & ~a.pages) + b.bytes * this.weight(a.pages & ~b.pages);
    return bytes / members(a.pages & b.pages & this.above).length; // Infinity if no page gains
  }

  /**
   * price returns how many bytes it costs to save a page one file by joining two groups: the bytes that pages load in
   * addition, by the files that pages above their limits save. It is Infinity if no file is saved.
   */
  price(a, b) {
    const { totals, limits } = this;
    const pages = a.pages | b.pages;
    const change = new Map(members(a.pages & b.pages).map((n) => [n, -1])); // of the number of files, by page
    let bytes = 0;
    for (const n of members(a.reaches | b.reaches | bit(a.number) | bit(b.number))) {
      const group = this.graph.groups[n];
      const more = pages & ~group.pages;
      bytes += group.bytes * this.weight(more);
      if (group === a || group === b) continue;
      for (const page of members(more)) change.set(page, (change.get(page) ?? 0) + 1);
    }
    let saved = 0;
    for (const [n, files] of change)
      saved += excess(totals[n].files, limits[n].files) - excess(totals[n].files + files, limits[n].files);
    return saved > 0 ? bytes / saved : Infinity;
  }

  /** best returns the two groups with the lowest price; nothing if no two can be joined. */
  best() {
    let best = { price: Infinity };
    const groups = this.graph.live.filter((g) => g.kind !== undefined && g.pages & this.above);
    for (const [i, a] of groups.entries())
      for (const b of groups.slice(i + 1)) {
        if (a.kind !== b.kind || this.least(a, b) >= best.price) continue;
        const price = this.price(a, b);
        if (price < best.price && !this.graph.circular(a, b)) best = { price, a, b };
      }
    return best.price < Infinity ? best : undefined;
  }
}

/**
 * merge returns groups of the parts that have a kind, as lists of their names, such that no page loads more than
 * most.files files. It avoids that one loads more than most.bytes bytes, but the sizes of parts only tell about what a
 * file of several will have. No group imports itself through another. It throws if it finds no such groups. Its result
 * depends on nothing else.
 * @param {Part[]} parts
 * @param {Page[]} pages
 */
export function merge(parts, pages) {
  kept.clear();
  const graph = new Graph(parts, pages);
  for (;;) {
    const mergers = new Mergers(graph, pages);
    const worst = pages.findIndex((_, n) => mergers.above & bit(n));
    if (worst < 0) return graph.live.filter((g) => g.kind !== undefined).map((g) => g.names);
    const best = mergers.best();
    if (!best) {
      const { name, most } = pages[worst];
      throw new Error(
        `page ${name} loads ${mergers.totals[worst].files} files, at most ${most.files}, and no more of them can be put ` +
          'together: load parts of the page later',
      );
    }
    graph.join(best.a, best.b);
  }
}
