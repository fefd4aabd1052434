// The sample machine of a price book's preview, and the request for its quote.
import type { Schemas } from '../api/client';
import { gib } from './draft';

export interface SampleMachine {
  flavor: string;
  /** ID of a kind of GPU (lib/offer.ts); empty for none. */
  gpu: string;
  /** Share of the GPU's time and VRAM in percent. */
  share: string;
  diskGib: string;
  storageClass: string;
  hours: string;
  gpuPercent: string;
}

interface Kind {
  id: string;
  model: string;
  pool: string;
  vramBytes: number;
}

const mib = 2 ** 20;
const mostDisk = 65_536; // GiB: the largest volume
const within = (text: string, most: number) => Math.min(most, Math.max(0, Math.round(Number(text)) || 0));

/** classesOf returns the storage classes that a book has prices for. */
export const classesOf = (book: Schemas['PriceBookSpec']): string[] => [
  ...new Set(book.prices.flatMap((p) => (p.where?.storageClass ? [p.where.storageClass] : []))),
];

/** firstClass returns the storage class to begin with: none if the book has a price for any. */
export const firstClass = (book: Schemas['PriceBookSpec']): string =>
  book.prices.some((p) => p.meter === 'volume-byte-seconds' && !p.where?.storageClass)
    ? ''
    : (classesOf(book)[0] ?? '');

/** typical returns the flavor that is the nearest to 8 vCPUs and 32 GiB of memory. */
export function typical<F extends { spec: Pick<Schemas['FlavorSpec'], 'vcpus' | 'memoryBytes'> }>(
  flavors: readonly F[],
): F | undefined {
  const far = ({ spec: s }: F) => Math.abs(Math.log2(s.vcpus / 8)) + Math.abs(Math.log2(s.memoryBytes / (32 * gib)));
  return flavors.reduce<F | undefined>((best, f) => (best && far(best) <= far(f) ? best : f), undefined);
}

/** quotable returns the parts of edited prices that a quote depends on, or undefined if the server would refuse them:
 * while they are typed, errors belong to no one. */
export function quotable(b: Schemas['PriceBookSpec']): Schemas['PriceBookSpec'] | undefined {
  const full = (at?: string) => !at || Date.parse(at) % 3_600_000 === 0;
  const rising = (upTo: number[]) => upTo.every((n, i) => n > (upTo[i - 1] ?? 0));
  const discounts = b.discounts ?? [];
  const ok =
    b.prices.every((p) => full(p.from) && rising((p.tiers ?? []).map((t) => t.upTo))) &&
    new Set(b.prices.map((p) => JSON.stringify([p.meter, p.where ?? {}, p.from ?? '']))).size === b.prices.length &&
    discounts.every(
      (d) =>
        d.basisPoints >= 1 &&
        d.basisPoints <= 10_000 &&
        full(d.from) &&
        full(d.until) &&
        (!d.until || !d.from || d.from < d.until),
    );
  return ok ? { currency: b.currency, prices: b.prices, discounts } : undefined;
}

/** quoteOf returns the request for a machine; its VRAM is the share of the GPU's. */
export function quoteOf(
  m: SampleMachine,
  kinds: readonly Kind[],
  prices?: Schemas['PriceBookSpec'],
): Schemas['PriceQuoteRequest'] {
  const kind = kinds.find((k) => k.id === m.gpu);
  const share = within(m.share, 100);
  const vramBytes = kind ? Math.floor((kind.vramBytes * share) / 100 / mib) * mib : 0;
  const rootBytes = Math.round((Math.min(mostDisk, Math.max(0, Number(m.diskGib))) * gib) / mib) * mib || 0;
  return {
    hours: within(m.hours, 720),
    ...(m.flavor && { flavor: m.flavor }),
    ...(rootBytes > 0 && { rootBytes }),
    ...(m.storageClass && { storageClass: m.storageClass }),
    ...(kind &&
      vramBytes > 0 && {
        model: kind.model,
        pool: kind.pool,
        vramBytes,
        sharePercent: share,
        gpuPercent: within(m.gpuPercent, 100),
      }),
    ...(prices && { prices }),
  };
}
