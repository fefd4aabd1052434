// What an instance costs an hour, by a price book. Exact, in micro-units of the
// currency, as the server rates: BigInt, rounded once for each line.
import type { Schemas } from '../api/client';

type Book = Schemas['PriceBookSpec'];
type Price = Schemas['Price'];

/** priceAt is the price of a meter that holds at a moment. */
export function priceAt(book: Book, meter: string, at: Date): Price | undefined {
  let best: Price | undefined;
  for (const p of book.prices) {
    if (p.meter !== meter) continue;
    const from = p.from ? Date.parse(p.from) : -Infinity;
    if (from <= at.getTime() && (!best || from >= (best.from ? Date.parse(best.from) : -Infinity))) best = p;
  }
  return best;
}

/** costMicros of so many units, to the nearest micro-unit. */
export function costMicros(price: Price | undefined, units: bigint): bigint {
  if (!price) return 0n;
  const per = BigInt(price.per);
  return (2n * units * BigInt(price.priceMicros) + per) / (2n * per);
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
  /** Of a GPU's time; 0: best effort, which may use all of it. */
  sharePercent: number;
  /** Standard unless given. */
  tier?: Tier;
}

export interface HourlyPrice {
  compute: bigint;
  disk: bigint;
  vram: bigint;
  gpu: bigint;
  gpuPercent: number;
  total: bigint;
}

const hour = 3600n;

/** hourly is the most that a size costs in an hour. */
export function hourly(book: Book, s: Size, at: Date): HourlyPrice {
  const cost = (meter: string, units: bigint) => costMicros(priceAt(book, meter, at), units);
  const gpuPercent = s.vramBytes > 0 ? s.sharePercent || 100 : 0;
  const compute = cost('vcpu-seconds', BigInt(s.vcpus) * hour) + cost('memory-byte-seconds', BigInt(s.memoryBytes) * hour);
  const disk = cost('volume-byte-seconds', BigInt(s.rootBytes) * hour);
  const vram = cost('vram-byte-seconds', BigInt(s.vramBytes) * hour);
  // A book without a price for a tier charges the standard one's.
  const gpuPrice = priceAt(book, tierMeters[s.tier ?? 'standard'], at) ?? priceAt(book, 'gpu-nanoseconds', at);
  const gpu = costMicros(gpuPrice, (hour * 1_000_000_000n * BigInt(gpuPercent)) / 100n);
  return { compute, disk, vram, gpu, gpuPercent, total: compute + disk + vram + gpu };
}
