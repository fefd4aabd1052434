// What an instance costs an hour, by a price book. Exact, in micro-units of the
// currency, as the server rates: BigInt, rounded once for each line.
import type { Schemas } from '../api/client';

type Book = Schemas['PriceBookSpec'];
type Price = Schemas['Price'];

/** Used is what use is of, as far as prices may differ by it. */
export type Used = Schemas['PriceSelector'];

const selectors = ['model', 'pool', 'storageClass', 'flavor', 'tier'] as const;

const matches = (where: Used | undefined, used: Used) =>
  selectors.every((field) => !where?.[field] || where[field] === used[field]);

/** specificity orders prices: more fields count more, and of as many the first ones. */
const specificity = (where: Used | undefined) =>
  selectors.reduce((n, field, i) => n + (where?.[field] ? 32 + (16 >> i) : 0), 0);

/**
 * priceAt is the price of a meter that holds at a moment: of those that match what is
 * used the most specific one, and of several of that the last to begin.
 */
export function priceAt(book: Book, meter: string, at: Date, used: Used = {}): Price | undefined {
  const begins = (p: Price) => (p.from ? Date.parse(p.from) : -Infinity);
  let best: Price | undefined;
  for (const p of book.prices) {
    if (p.meter !== meter || begins(p) > at.getTime() || !matches(p.where, used)) continue;
    const [is, was] = [specificity(p.where), best ? specificity(best.where) : -1];
    if (!best || is > was || (is === was && begins(p) >= begins(best))) best = p;
  }
  return best;
}

/** rounded n/per, half a micro-unit up. */
const rounded = (n: bigint, per: bigint): bigint => (2n * n + per) / (2n * per);

/**
 * costMicros of the first units that somebody uses in a period, less a discount in
 * basis points: each tier to the nearest micro-unit.
 */
export function costMicros(price: Price | undefined, units: bigint, discount = 0n): bigint {
  if (!price) return 0n;
  const per = BigInt(price.per);
  let [cost, begin] = [0n, 0n];
  for (const tier of [...(price.tiers ?? []), { upTo: 0, priceMicros: price.priceMicros }]) {
    const end = tier.upTo ? BigInt(tier.upTo) * per : units;
    const part = (end < units ? end : units) - begin;
    if (part <= 0n) continue;
    const micros = rounded(part * BigInt(tier.priceMicros), per);
    cost += micros - rounded(micros * discount, 10_000n);
    begin += part;
  }
  return cost;
}

/** discountAt is the largest discount on a meter at a moment, in basis points. */
function discountAt(book: Book, meter: string, at: Date): bigint {
  const holds = (book.discounts ?? []).filter(
    (d) =>
      (!d.meters?.length || d.meters.includes(meter)) &&
      !(d.from && Date.parse(d.from) > at.getTime()) &&
      !(d.until && Date.parse(d.until) <= at.getTime()),
  );
  return BigInt(Math.max(0, ...holds.map((d) => d.basisPoints)));
}

/** Tier of a virtual GPU: how soon it gets the GPU, and what its time costs. */
export type Tier = 'premium' | 'standard' | 'basic';
export const tiers: Tier[] = ['premium', 'standard', 'basic'];

const tierMeters = { premium: 'gpu-premium-nanoseconds', standard: 'gpu-nanoseconds', basic: 'gpu-basic-nanoseconds' };

export interface Size {
  vcpus: number;
  memoryBytes: number;
  rootBytes: number;
  vramBytes: number;
  /** Standard unless given. */
  tier?: Tier;
  /** Reserved hundredths of a card; none unless given. */
  sharePercent?: number;
  /** Pool and model of the card, where they are known. */
  pool?: string;
  model?: string;
}

export interface HourlyPrice {
  compute: bigint;
  disk: bigint;
  vram: bigint;
  gpu: bigint;
  total: bigint;
}

const hour = 3600n;

/**
 * hourly is what an hour of a size costs that takes so much of a GPU's time, and
 * all of its VRAM: what rating makes of such an hour, before commitments, a minimum
 * and taxes (billing/invoice/testdata/hours.json).
 */
export function hourly(book: Book, s: Size, gpuPercent: number, at: Date): HourlyPrice {
  const used: Used = { ...(s.pool && { pool: s.pool }), ...(s.model && { model: s.model }) };
  const cost = (meter: string, units: bigint, price = priceAt(book, meter, at, used)) =>
    costMicros(price, units, discountAt(book, meter, at));
  const compute =
    cost('vcpu-seconds', BigInt(s.vcpus) * hour) + cost('memory-byte-seconds', BigInt(s.memoryBytes) * hour);
  const disk = cost('volume-byte-seconds', BigInt(s.rootBytes) * hour);
  const vram = cost('vram-byte-seconds', BigInt(s.vramBytes) * hour);
  // A book without a price for a tier charges the standard one's.
  const meter = tierMeters[s.tier ?? 'standard'];
  const own = book.prices.some((p) => p.meter === meter);
  const time = s.vramBytes > 0 ? (hour * 1_000_000_000n * BigInt(gpuPercent)) / 100n : 0n;
  // A share that has a price is paid, used or not, and the time that it gives is not.
  const share = BigInt(s.vramBytes > 0 ? (s.sharePercent ?? 0) : 0);
  const reserved =
    share > 0n ? priceAt(book, 'gpu-share-seconds', at, { ...used, tier: s.tier ?? 'standard' }) : undefined;
  const given = reserved ? (hour * 1_000_000_000n * share) / 100n : 0n;
  const beyond = time > given ? time - given : 0n;
  const gpu =
    (reserved ? cost('gpu-share-seconds', share * hour, reserved) : 0n) +
    cost(meter, beyond, priceAt(book, own ? meter : 'gpu-nanoseconds', at, used));
  return { compute, disk, vram, gpu, total: compute + disk + vram + gpu };
}
