// Merges concurrent changes of an object: the user's edits and what another user has saved. It compares field by
// field, and lists row by row: what only one of them has changed is taken from that one; what both have changed is
// decided by the user.

/** A row of a list in a form; its key stays the same while it is edited. */
export interface Row {
  key: number;
}

let last = 0;
/** nextKey returns a new key, which identifies a row while it is edited. */
export const nextKey = () => ++last;

/** At identifies a field of a form, or a row of one. */
export interface At<F> {
  field: keyof F;
  key?: number;
}

/** Taken is a change that only the other user made, and the value before. */
export interface Taken<F> extends At<F> {
  before: unknown;
}

/** Merged is the user's form merged with what the other user has saved. */
export interface Merged<F> {
  /** The saved form, with the keys of the user's rows. */
  was: F;
  form: F;
  taken: Taken<F>[];
  /** Changes of both; the form has the user's. */
  clashes: At<F>[];
}

const keyless = (v: unknown): unknown => (v && typeof v === 'object' && 'key' in v ? { ...v, key: 0 } : v);
/** same compares values without the keys of rows. */
export const same = (a: unknown, b: unknown): boolean =>
  JSON.stringify(Array.isArray(a) ? a.map(keyless) : keyless(a)) ===
  JSON.stringify(Array.isArray(b) ? b.map(keyless) : keyless(b));
const isRow = (v: unknown): v is Row => typeof v === 'object' && v !== null && 'key' in v;
const rowsOf = (...lists: unknown[]): Row[][] | null =>
  lists.every(Array.isArray) && lists.flat().length > 0 && lists.flat().every(isRow) ? (lists as Row[][]) : null;

export const sameAt = <F>(a: At<F>, b: At<F>) => a.field === b.field && a.key === b.key;

/** valueAt returns the value at a place of a form; undefined if its row does not exist. */
export function valueAt<F>(form: F, { field, key }: At<F>): unknown {
  const value: unknown = form[field];
  return key === undefined ? value : (value as Row[]).find((r) => r.key === key);
}

/** withValue returns a form with another value at a place; undefined removes a row. */
export function withValue<F>(form: F, { field, key }: At<F>, value: unknown): F {
  if (key === undefined) return { ...form, [field]: value };
  const rows = form[field] as Row[];
  const changed = rows.some((r) => r.key === key)
    ? rows.flatMap((r) => (r.key === key ? (value ? [value as Row] : []) : [r]))
    : value
      ? [...rows, value as Row]
      : rows;
  return { ...form, [field]: changed };
}

/**
 * known gives the rows of theirs the keys of the rows that they match: an equal row, or else the one that was in
 * the same place and is not otherwise matched.
 */
function known(base: Row[], mine: Row[], theirs: Row[]): Row[] {
  const free = new Set(base);
  const added = new Set(mine.filter((m) => !base.some((b) => b.key === m.key)));
  const take = (from: Set<Row>, r: Row): number | undefined => {
    const found = [...from].find((x) => same(x, r));
    if (found) from.delete(found);
    return found?.key;
  };
  const keys = theirs.map((r) => take(free, r) ?? take(added, r));
  return theirs.map((r, i) => {
    const there = base[i];
    const key = keys[i] ?? (there && free.delete(there) ? there.key : undefined);
    return key === undefined ? r : { ...r, key };
  });
}

/** merge merges mine and theirs, which both began as base. */
export function merge<F extends object>(base: F, mine: F, theirs: F): Merged<F> {
  const out: Merged<F> = { was: theirs, form: mine, taken: [], clashes: [] };
  const one = (at: At<F>, b: unknown, m: unknown, t: unknown): unknown => {
    if (same(m, t) || same(b, t)) return m;
    if (same(b, m)) {
      out.taken.push({ ...at, before: b });
      return t;
    }
    out.clashes.push(at);
    return m;
  };
  for (const field of Object.keys(theirs) as (keyof F)[]) {
    const lists = rowsOf(base[field], mine[field], theirs[field]);
    if (!lists) {
      out.form = { ...out.form, [field]: one({ field }, base[field], mine[field], theirs[field]) };
      continue;
    }
    const [b, m, t] = lists as [Row[], Row[], Row[]];
    const rows = known(b, m, t);
    const of = (list: Row[], key: number) => list.find((r) => r.key === key);
    const keys = [...new Set([...rows, ...m].map((r) => r.key))];
    const gone = b.map((r) => r.key).filter((k) => !keys.includes(k));
    const merged = [...keys, ...gone].map((key) => one({ field, key }, of(b, key), of(m, key), of(rows, key)));
    out.was = { ...out.was, [field]: rows };
    out.form = { ...out.form, [field]: merged.filter(isRow) };
  }
  return out;
}
