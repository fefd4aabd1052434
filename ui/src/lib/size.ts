// Sizes as people write them, and as the API and the command take them.
const units: Record<string, number> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** parseSize is a size in bytes; NaN where it is none. A unit is needed: 0 is the only size without. */
export function parseSize(text: string): number {
  const m = /^(\d+(?:\.\d+)?)\s*(B|KiB|MiB|GiB|TiB)?$/.exec(text.trim());
  if (!m) return Number.NaN;
  const n = Number(m[1]);
  if (!m[2]) return n === 0 ? 0 : Number.NaN;
  return Math.round(n * (units[m[2]] ?? Number.NaN));
}
