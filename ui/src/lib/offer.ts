// Offers for the form that creates an instance.
import type { Schemas } from '../api/client';
import { gib, type Draft } from './draft';

export type Offer = Schemas['Offer'];

/** Kind of GPU: one model in one pool. */
export interface GpuKind {
  id: string;
  model: string;
  pool: string;
  vramBytes: number;
  /** The slices of one tier, the largest first. */
  slices: Offer[];
  /** Price of the cheapest slice while the GPU is idle. */
  fromMicros: number;
  currency: string;
  /** How many of the smallest slice are free. */
  free: number;
}

const idOf = (o: { model?: string; pool?: string }) => JSON.stringify([o.pool ?? '', o.model ?? '']);

/** kindsOf returns the GPU kinds of the offers of a tier, in the offers' order. */
export function kindsOf(offers: Offer[], tier: string): GpuKind[] {
  const kinds = new Map<string, Offer[]>();
  for (const o of offers) if (o.model && o.tier === tier) kinds.set(idOf(o), [...(kinds.get(idOf(o)) ?? []), o]);
  return [...kinds].map(([id, slices]) => ({
    id,
    model: slices[0]!.model ?? '',
    pool: slices[0]!.pool ?? '',
    vramBytes: slices[0]!.gpuVramBytes ?? 0,
    slices,
    fromMicros: Math.min(...slices.map((s) => s.reservedMicros)),
    currency: slices[0]!.currency,
    free: Math.max(...slices.map((s) => s.free)),
  }));
}

/** firstSlice returns the whole GPU if it is free, else the largest free slice. */
export const firstSlice = (k: GpuKind): Offer => k.slices.find((s) => s.free > 0) ?? k.slices[0]!;

/** kindOf returns the GPU kind that a draft requests; empty for none. */
export const kindOf = (d: Draft): string =>
  d.vgpu ? idOf({ model: d.model || undefined, pool: d.pool || 'default' }) : '';

/** vramOf returns the VRAM of a draft in bytes; 0 if it is not a number. */
export const vramOf = (d: Draft): number => Math.max(0, Math.round(Number(d.vramGib) * gib)) || 0;

/** isOf reports whether a draft requests an offer. */
export const isOf = (d: Draft, o: Offer): boolean =>
  o.model
    ? d.vgpu &&
      kindOf(d) === idOf(o) &&
      vramOf(d) === o.vramBytes &&
      Number(d.share) === (o.sharePercent ?? 0) &&
      (d.tier || 'standard') === o.tier
    : !d.vgpu;

/** take sets the draft's GPU to an offer's slice; without an offer, to no GPU. */
export const take = (d: Draft, o?: Offer): Draft =>
  o?.model
    ? {
        ...d,
        vgpu: true,
        model: o.model,
        pool: o.pool === 'default' ? '' : (o.pool ?? ''),
        vramGib: String((o.vramBytes ?? 0) / gib),
        share: String(o.sharePercent ?? 0),
      }
    : { ...d, vgpu: false };

/** fitting returns the smallest slice with enough VRAM, preferably one that is free. */
export function fitting(offers: Offer[], vramBytes: number): Offer | undefined {
  const enough = offers.filter((o) => o.model && (o.vramBytes ?? 0) >= vramBytes);
  const free = enough.filter((o) => o.free > 0);
  return [...(free.length > 0 ? free : enough)].sort((a, b) => (a.vramBytes ?? 0) - (b.vramBytes ?? 0))[0];
}

export type Part = 'compute' | 'disk' | 'vram' | 'gpu';

const parts: Record<string, Part> = {
  'vcpu-seconds': 'compute',
  'memory-byte-seconds': 'compute',
  'volume-byte-seconds': 'disk',
  'vram-byte-seconds': 'vram',
};

/** partsOf splits an offer's price by meter, for an idle and a fully used GPU. */
export function partsOf(o: Offer): [Part, { reservedMicros: number; fullUseMicros: number }][] {
  const order: Part[] = o.model ? ['compute', 'disk', 'vram', 'gpu'] : ['compute', 'disk'];
  return order.map((part) => {
    const of = o.prices.filter((p) => (parts[p.meter] ?? 'gpu') === part);
    return [
      part,
      {
        reservedMicros: of.reduce((n, p) => n + p.reservedMicros, 0),
        fullUseMicros: of.reduce((n, p) => n + p.fullUseMicros, 0),
      },
    ];
  });
}
