// A QR code (ISO/IEC 18004) of a short text: bytes, error correction level L,
// versions 1 to 20. true is dark; the quiet zone around it is the drawer's.

/** Of level L, by version: bytes of error correction in a block, and blocks (table 9). */
const ecBytes = [7, 10, 15, 20, 26, 18, 20, 24, 30, 18, 20, 24, 26, 30, 22, 24, 28, 30, 28, 28];
const ecBlocks = [1, 1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 4, 6, 6, 6, 6, 7, 8];

/** Where alignment patterns stand (annex E). */
function alignment(version: number): number[] {
  if (version === 1) return [];
  const count = Math.floor(version / 7) + 2;
  const step = Math.ceil((version * 4 + 4) / (count * 2 - 2)) * 2;
  const last = version * 4 + 10;
  return [6, ...Array.from({ length: count - 1 }, (_, i) => last - (count - 2 - i) * step)];
}

/** How many bytes a version holds, error correction too. */
function rawBytes(version: number): number {
  const n = alignment(version).length;
  const functions = n === 0 ? 0 : (25 * n - 10) * n - 55;
  return Math.floor(((16 * version + 128) * version + 64 - functions - (version >= 7 ? 36 : 0)) / 8);
}

/** Multiplication in GF(2^8) modulo x^8+x^4+x^3+x^2+1. */
function times(a: number, b: number): number {
  let z = 0;
  for (let i = 7; i >= 0; i--) {
    z = (z << 1) ^ ((z >> 7) * 0x11d);
    z ^= ((b >> i) & 1) * a;
  }
  return z;
}

function generator(degree: number): number[] {
  const g: number[] = Array.from({ length: degree }, (_, i) => (i === degree - 1 ? 1 : 0));
  let root = 1;
  for (let i = 0; i < degree; i++) {
    for (let j = 0; j < degree; j++) g[j] = times(g[j]!, root) ^ (g[j + 1] ?? 0);
    root = times(root, 2);
  }
  return g;
}

function remainder(data: number[], g: number[]): number[] {
  const rest = g.map(() => 0);
  for (const b of data) {
    const factor = b ^ rest.shift()!;
    rest.push(0);
    g.forEach((c, i) => (rest[i]! ^= times(c, factor)));
  }
  return rest;
}

/** The text's bytes with their head, padded to what the version has. */
function dataOf(bytes: Uint8Array, version: number, capacity: number): number[] {
  const bits: number[] = [];
  const put = (value: number, n: number) => {
    for (let i = n - 1; i >= 0; i--) bits.push((value >> i) & 1);
  };
  put(4, 4); // byte mode
  put(bytes.length, version < 10 ? 8 : 16);
  for (const b of bytes) put(b, 8);
  put(0, Math.min(4, capacity * 8 - bits.length));
  put(0, (8 - (bits.length % 8)) % 8);
  for (let pad = 0xec; bits.length < capacity * 8; pad ^= 0xec ^ 0x11) put(pad, 8);
  return Array.from({ length: capacity }, (_, i) => bits.slice(i * 8, i * 8 + 8).reduce((n, bit) => n * 2 + bit, 0));
}

/** Blocks with their error correction, interleaved. */
function codewords(data: number[], version: number): number[] {
  const blocks = ecBlocks[version - 1]!;
  const ec = ecBytes[version - 1]!;
  const raw = rawBytes(version);
  const short = blocks - (raw % blocks);
  const size = Math.floor(raw / blocks) - ec;
  const g = generator(ec);
  const all: { data: number[]; ec: number[] }[] = [];
  for (let i = 0, at = 0; i < blocks; i++) {
    const part = data.slice(at, (at += size + (i < short ? 0 : 1)));
    all.push({ data: part, ec: remainder(part, g) });
  }
  const out: number[] = [];
  for (let i = 0; i <= size; i++) for (const b of all) if (i < b.data.length) out.push(b.data[i]!);
  for (let i = 0; i < ec; i++) for (const b of all) out.push(b.ec[i]!);
  return out;
}

const masks: ((x: number, y: number) => boolean)[] = [
  (x, y) => (x + y) % 2 === 0,
  (_, y) => y % 2 === 0,
  (x) => x % 3 === 0,
  (x, y) => (x + y) % 3 === 0,
  (x, y) => (Math.floor(x / 3) + Math.floor(y / 2)) % 2 === 0,
  (x, y) => ((x * y) % 2) + ((x * y) % 3) === 0,
  (x, y) => (((x * y) % 2) + ((x * y) % 3)) % 2 === 0,
  (x, y) => (((x + y) % 2) + ((x * y) % 3)) % 2 === 0,
];

/** A number with its BCH code behind it. */
function bch(value: number, poly: number, degree: number): number {
  let rest = value;
  for (let i = 0; i < degree; i++) rest = (rest << 1) ^ ((rest >> (degree - 1)) * poly);
  return (value << degree) | rest;
}

class Grid {
  readonly size: number;
  readonly dark: boolean[][];
  readonly fixed: boolean[][];
  constructor(readonly version: number) {
    this.size = version * 4 + 17;
    const empty = () => Array.from({ length: this.size }, () => Array.from({ length: this.size }, () => false));
    this.dark = empty();
    this.fixed = empty();
  }
  put(x: number, y: number, dark: boolean) {
    if (x < 0 || y < 0 || x >= this.size || y >= this.size) return;
    this.dark[y]![x] = dark;
    this.fixed[y]![x] = true;
  }
  /** Squares in each other around a middle: dark where the distance is in rings. */
  square(cx: number, cy: number, radius: number, light: number[]) {
    for (let dy = -radius; dy <= radius; dy++)
      for (let dx = -radius; dx <= radius; dx++) this.put(cx + dx, cy + dy, !light.includes(Math.max(Math.abs(dx), Math.abs(dy))));
  }
  patterns() {
    const { size, version } = this;
    for (let i = 0; i < size; i++) {
      this.put(6, i, i % 2 === 0);
      this.put(i, 6, i % 2 === 0);
    }
    for (const [x, y] of [[3, 3], [size - 4, 3], [3, size - 4]] as const) this.square(x, y, 4, [2, 4]);
    const at = alignment(version);
    const last = at.length - 1;
    at.forEach((x, i) => at.forEach((y, j) => {
      if ((i === 0 && j === 0) || (i === 0 && j === last) || (i === last && j === 0)) return;
      this.square(x, y, 2, [1]);
    }));
    this.format(0);
    if (version < 7) return;
    const bits = bch(version, 0x1f25, 12);
    for (let i = 0; i < 18; i++) {
      const a = size - 11 + (i % 3);
      const b = Math.floor(i / 3);
      this.put(a, b, ((bits >> i) & 1) === 1);
      this.put(b, a, ((bits >> i) & 1) === 1);
    }
  }
  format(mask: number) {
    const { size } = this;
    const bits = bch((1 << 3) | mask, 0x537, 10) ^ 0x5412; // 1: level L
    const bit = (i: number) => ((bits >> i) & 1) === 1;
    for (let i = 0; i <= 5; i++) this.put(8, i, bit(i));
    this.put(8, 7, bit(6));
    this.put(8, 8, bit(7));
    this.put(7, 8, bit(8));
    for (let i = 9; i < 15; i++) this.put(14 - i, 8, bit(i));
    for (let i = 0; i < 8; i++) this.put(size - 1 - i, 8, bit(i));
    for (let i = 8; i < 15; i++) this.put(8, size - 15 + i, bit(i));
    this.put(8, size - 8, true);
  }
  /** Pairs of columns from the right, up and down in turn. */
  fill(words: number[]) {
    let i = 0;
    for (let right = this.size - 1; right >= 1; right -= 2) {
      if (right === 6) right = 5;
      for (let n = 0; n < this.size; n++)
        for (const x of [right, right - 1]) {
          const y = ((right + 1) & 2) === 0 ? this.size - 1 - n : n;
          if (this.fixed[y]![x] || i >= words.length * 8) continue;
          this.dark[y]![x] = ((words[i >> 3]! >> (7 - (i & 7))) & 1) === 1;
          i++;
        }
    }
  }
  masked(mask: number): boolean[][] {
    this.format(mask);
    return this.dark.map((row, y) => row.map((d, x) => (this.fixed[y]![x] ? d : d !== masks[mask]!(x, y))));
  }
}

/** How hard a grid is to read (7.8.3). */
function penalty(grid: boolean[][]): number {
  const size = grid.length;
  let sum = 0;
  const columns = grid.map((_, x) => grid.map((row) => row[x]!));
  for (const line of [...grid, ...columns]) {
    const text = line.map((d) => (d ? '1' : '0')).join('');
    for (const run of text.match(/0{5,}|1{5,}/g) ?? []) sum += run.length - 2;
    for (let i = 0; i + 11 <= size; i++) if (['10111010000', '00001011101'].includes(text.slice(i, i + 11))) sum += 40;
  }
  for (let y = 0; y + 1 < size; y++)
    for (let x = 0; x + 1 < size; x++) if (grid[y]![x] === grid[y]![x + 1] && grid[y]![x] === grid[y + 1]![x] && grid[y]![x] === grid[y + 1]![x + 1]) sum += 3;
  const dark = grid.flat().filter(Boolean).length / size / size;
  return sum + Math.floor(Math.abs(dark * 20 - 10)) * 10;
}

/** qr is the code of a text, in rows; undefined: the text is too long. mask: 0 to 7, else the one that is read best. */
export function qr(text: string, mask?: number): boolean[][] | undefined {
  const bytes = new TextEncoder().encode(text);
  for (let version = 1; version <= ecBytes.length; version++) {
    const capacity = rawBytes(version) - ecBytes[version - 1]! * ecBlocks[version - 1]!;
    if (bytes.length + (version < 10 ? 2 : 3) > capacity) continue; // a head of 12 or 20 bits, and the end's 4
    const grid = new Grid(version);
    grid.patterns();
    grid.fill(codewords(dataOf(bytes, version, capacity), version));
    const choices = mask === undefined ? masks.map((_, m) => grid.masked(m)) : [grid.masked(mask)];
    return choices.reduce((a, b) => (penalty(b) < penalty(a) ? b : a));
  }
  return undefined;
}

/** path draws it: a square of one unit for each dark module. */
export const path = (grid: boolean[][]): string => grid.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
