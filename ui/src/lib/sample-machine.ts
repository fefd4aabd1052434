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

/** quoteOf returns the request for a machine; its VRAM is the share of the GPU's. */
export function quoteOf(
  m: SampleMachine,
  kinds: readonly Kind[],
  prices?: Schemas['PriceBookSpec'],
): Schemas['PriceQuoteRequest'] {
  const kind = kinds.find((k) => k.id === m.gpu);
  const share = within(m.share, 100);
  const vramBytes = kind ? Math.floor((kind.vramBytes * share) / 100 / mib) * mib : 0;
  const rootBytes = Math.max(0, Math.round(Number(m.diskGib) * gib)) || 0;
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
