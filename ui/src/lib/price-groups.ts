// A price book for reading: its prices in groups, in customary units, with what a month of 30 days costs.
import type { Schemas } from '../api/client';
import { shown, unitFor, type Unit } from './meter';

type Price = Schemas['Price'];

export const priceGroups = ['compute', 'gpu', 'storage', 'network', 'other'] as const;
export type PriceGroup = (typeof priceGroups)[number];

const groupOf: Record<string, PriceGroup> = {
  'vcpu-seconds': 'compute',
  'memory-byte-seconds': 'compute',
  'gpu-share-seconds': 'gpu',
  'gpu-nanoseconds': 'gpu',
  'gpu-premium-nanoseconds': 'gpu',
  'gpu-basic-nanoseconds': 'gpu',
  'vram-byte-seconds': 'gpu',
  'volume-byte-seconds': 'storage',
  'snapshot-byte-seconds': 'storage',
  'address-seconds': 'network',
  'egress-bytes': 'network',
};

const monthHours = 720n;

export interface PriceLine {
  key: string;
  price: Price;
  /** The price per unit; without a unit, in micro-units per base units. */
  unit?: Unit;
  /** Exact decimal price of the unit. */
  each?: string;
  /** Micro-units for a unit all month, for units of an hour or a month. */
  month?: bigint;
  /** Micro-units for a month of a half, a quarter and a tenth of a GPU, for GPU time. */
  slices?: bigint[];
  tiers: { upTo: number; each: string }[];
}

export const sliceShares = [50n, 25n, 10n];

/** ofPercent returns the price of a part of some base units, rounded to micro-units. */
function ofPercent(p: Price, units: bigint, percent = 100n) {
  const per = BigInt(p.per) * 100n;
  return (BigInt(p.priceMicros ?? 0) * units * percent * 2n + per) / (2n * per);
}

function lineOf(price: Price, key: string): PriceLine {
  const unit = unitFor(price.meter, price);
  const each = unit && shown(price, unit.per);
  if (!unit || each === undefined) return { key, price, tiers: [] };
  const hours = unit.id === 'gib-month' ? 1n : unit.id.endsWith('hour') ? monthHours : undefined;
  return {
    key,
    price,
    unit,
    each,
    ...(hours && { month: ofPercent(price, unit.per * hours) }),
    ...(unit.id === 'gpu-hour' && { slices: sliceShares.map((s) => ofPercent(price, unit.per * monthHours, s)) }),
    tiers: (price.tiers ?? []).map((t) => ({
      upTo: t.upTo,
      each: shown({ priceMicros: t.priceMicros, per: price.per }, unit.per) ?? '',
    })),
  };
}

/** groupsOf returns the groups of a price book that have prices, each in the order of the book, GPUs by model. */
export function groupsOf(book: Schemas['PriceBookSpec']): { group: PriceGroup; lines: PriceLine[] }[] {
  const lines = book.prices.map((p, i) => lineOf(p, String(i)));
  return priceGroups
    .map((group) => ({ group, lines: lines.filter((l) => (groupOf[l.price.meter] ?? 'other') === group) }))
    .map((g) => ({ ...g, lines: [...g.lines].sort(byModel) }))
    .filter((g) => g.lines.length > 0);
}

const modelOf = (l: PriceLine) => l.price.where?.model ?? '';
const byModel = (a: PriceLine, b: PriceLine) => modelOf(a).localeCompare(modelOf(b));
