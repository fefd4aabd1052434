// Two change the same object: what one has typed meets what the other has saved.
// Field by field, and a list's rows one by one, what only one of them has changed
// is as that one has it; what both have changed is decided by who edits.

/** A row of a list in a form: its key stays while it is edited. */
export interface Row {
  key: number;
}

let last = 0;
/** nextKey tells rows apart while they are edited. */
export const nextKey = () => ++last;

/** At is a field of a form, or a row of one. */
export interface At<F> {
  field: keyof F;
  key?: number;
}

/** Taken is what the other alone has changed, and how it was before. */
export interface Taken<F> extends At<F> {
  before: unknown;
}

/** Merged is a form over what the other has saved. */
export interface Merged<F> {
  /** As the other has saved it, with the keys of the rows that one has. */
  was: F;
  form: F;
  taken: Taken<F>[];
  /** What both have changed: one's own is in the form. */
  clashes: At<F>[];
}

const keyless = (v: unknown): unknown => (v && typeof v === 'object' && 'key' in v ? { ...v, key: 0 } : v);
/** same: whatever the keys of rows are. */
export const same = (a: unknown, b: unknown): boolean =>
  JSON.stringify(Array.isArray(a) ? a.map(keyless) : keyless(a)) ===
  JSON.stringify(Array.isArray(b) ? b.map(keyless) : keyless(b));
const isRow = (v: unknown): v is Row => typeof v === 'object' && v !== null && 'key' in v;
const rowsOf = (...lists: unknown[]): Row[][] | null =>
  lists.every(Array.isArray) && lists.flat().length > 0 && lists.flat().every(isRow) ? (lists as Row[][]) : null;

export const sameAt = <F>(a: At<F>, b: At<F>) => a.field === b.field && a.key === b.key;

/** valueAt a place of a form: undefined where its row is not there. */
export function valueAt<F>(form: F, { field, key }: At<F>): unknown {
  const value: unknown = form[field];
  return key === undefined ? value : (value as Row[]).find((r) => r.key === key);
}

/** withValue is a form with another value at a place; a row without one is left out. */
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
 * known gives theirs the keys of the rows that they are: those that are equal,
 * and else the one that stood in the same place and is no more.
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

/** merge mine, which began as base, with theirs, which did too. */
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
