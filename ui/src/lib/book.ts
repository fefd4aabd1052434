// A price book in its editor, in customary units, and the conversion back.
import type { Schemas } from '../api/client';
import { decimal, parseMicros } from './amount';
import { nextKey } from './merge';
import { exact, shown, unitFor, units } from './meter';

type Book = Schemas['PriceBookSpec'];
type Price = Schemas['Price'];
type Commitment = Schemas['Commitment'];

export interface TierRow {
  upTo: string;
  price: string;
}

export interface PriceRow {
  key: number;
  meter: string;
  /** ID of one of the meter's units. */
  unit: string;
  price: string;
  /** In the format of a datetime-local input, in UTC; empty means always. */
  from: string;
  tiers: TierRow[];
  /** The condition of the price, kept unchanged. */
  where?: Price['where'];
  /** A price that has no finite decimal in any unit, kept unchanged. */
  raw?: Price;
}

export interface CommitmentRow {
  key: number;
  meter: string;
  unit: string;
  quantity: string;
  price: string;
  from: string;
  until: string;
  raw?: Commitment;
}

export interface DiscountRow {
  key: number;
  /** Empty means all. */
  meter: string;
  percent: string;
  from: string;
  until: string;
  raw?: Schemas['Discount'];
}

export interface BookForm {
  prices: PriceRow[];
  commitments: CommitmentRow[];
  discounts: DiscountRow[];
  minimum: string;
  seller: string;
  address: string;
  taxId: string;
}

/** local returns a time in the format of a datetime-local input, in UTC; moment converts it back. */
export const local = (at: string | undefined) =>
  at && !at.startsWith('0001-') ? new Date(at).toISOString().slice(0, 16) : '';
export const moment = (text: string) => (text ? { at: `${text.slice(0, 16)}:00Z` } : undefined);
const unitById = (meter: string, id: string) => units[meter]?.find((u) => u.id === id);

/** percentOf formats hundredths of a percent. */
export const percentOf = (basisPoints: number) => decimal(BigInt(basisPoints) * 10_000n);

/** basisPoints parses a percentage; undefined: it is not one, or has too many digits. */
export const basisPoints = (text: string): number | undefined => {
  const micros = parseMicros(text);
  return micros === undefined || micros < 0 || micros % 10_000 !== 0 ? undefined : micros / 10_000;
};

function priceRow(p: Price): PriceRow {
  const unit = unitFor(p.meter, p);
  const tiered = (p.tiers?.length ?? 0) > 0;
  // Tiers are counted in the unit of the price.
  if (!unit || (tiered && unit.per !== BigInt(p.per)))
    return { key: nextKey(), meter: p.meter, unit: '', price: '', from: local(p.from), tiers: [], raw: p };
  return {
    key: nextKey(),
    meter: p.meter,
    unit: unit.id,
    price: shown(p, unit.per) ?? '',
    from: local(p.from),
    ...(p.where && { where: p.where }),
    tiers: (p.tiers ?? []).map((t) => ({
      upTo: String(t.upTo),
      price: shown({ priceMicros: t.priceMicros, per: p.per }, unit.per) ?? '',
    })),
  };
}

function commitmentRow(c: Commitment): CommitmentRow {
  const unit = units[c.meter]?.find((u) => u.per === BigInt(c.per));
  const common = { key: nextKey(), meter: c.meter, from: local(c.from), until: local(c.until) };
  return unit
    ? { ...common, unit: unit.id, quantity: String(c.quantity), price: decimal(c.priceMicros) }
    : { ...common, unit: '', quantity: '', price: '', raw: c };
}

export const bookForm = (b: Book): BookForm => ({
  prices: b.prices.map(priceRow),
  commitments: (b.commitments ?? []).map(commitmentRow),
  discounts: (b.discounts ?? []).map((d) => ({
    key: nextKey(),
    meter: d.meters?.[0] ?? '',
    percent: percentOf(d.basisPoints),
    from: local(d.from),
    until: local(d.until),
    ...((d.meters?.length ?? 0) > 1 && { raw: d }),
  })),
  minimum: b.minimumMicros ? decimal(b.minimumMicros) : '',
  seller: b.seller?.name ?? '',
  address: b.seller?.address?.join('\n') ?? '',
  taxId: b.seller?.taxId ?? '',
});

export const newPrice = (meter: string): PriceRow => ({
  key: nextKey(),
  meter,
  unit: units[meter]?.[0]?.id ?? '',
  price: '',
  from: '',
  tiers: [],
});

/** Problem is an error that the form itself finds, at a path as the API names them. */
export type Problem = 'price' | 'digits' | 'number' | 'percent' | 'amount';
export type Problems = Record<string, Problem>;

/** specOf returns the spec of a form, and its problems; with problems, the spec must not be sent. */
export function specOf(currency: string, f: BookForm): { spec: Book; problems: Problems } {
  const problems: Problems = {};
  const whole = (text: string, path: string) => {
    if (!/^\d{1,15}$/.test(text.trim())) problems[path] = 'number';
    return Number(text);
  };
  const rate = (text: string, path: string) => {
    const n = basisPoints(text);
    if (n === undefined) problems[path] = 'percent';
    return n ?? 0;
  };
  const amount = (text: string, path: string) => {
    const n = parseMicros(text || '0');
    if (n === undefined || n < 0) problems[path] = 'amount';
    return n ?? 0;
  };
  const span = (r: { from: string; until?: string }) => ({
    ...(r.from && { from: moment(r.from)?.at }),
    ...(r.until && { until: moment(r.until)?.at }),
  });

  const prices = f.prices.map((r, i): Price => {
    if (r.raw) return r.raw;
    const at = `spec.prices[${i}]`;
    const unit = unitById(r.meter, r.unit);
    const e = unit && exact(r.price, unit.per);
    if (!e) problems[`${at}.priceMicros`] = 'price';
    else if (r.tiers.length > 0 && e.per !== unit.per) problems[`${at}.priceMicros`] = 'digits';
    const tiers = r.tiers.map((t, j) => {
      const price = unit && exact(t.price, unit.per);
      if (!price) problems[`${at}.tiers[${j}].priceMicros`] = 'price';
      else if (price.per !== unit.per) problems[`${at}.tiers[${j}].priceMicros`] = 'digits';
      return { upTo: whole(t.upTo, `${at}.tiers[${j}].upTo`), priceMicros: Number(price?.priceMicros ?? 0n) };
    });
    // An invoice's line shows the price of one unit, so the name would be wrong for a price per several units.
    const name = e && unit && e.per === unit.per ? { unit: unit.invoice } : {};
    return {
      meter: r.meter,
      ...(r.where && { where: r.where }),
      priceMicros: Number(e?.priceMicros ?? 0n),
      per: Number(e?.per ?? 1n),
      ...name,
      ...span(r),
      ...(tiers.length > 0 && { tiers }),
    };
  });
  const commitments = f.commitments.map((r, i): Commitment => {
    if (r.raw) return r.raw;
    const at = `spec.commitments[${i}]`;
    return {
      meter: r.meter,
      quantity: whole(r.quantity, `${at}.quantity`),
      per: Number(unitById(r.meter, r.unit)?.per ?? 1n),
      priceMicros: amount(r.price, `${at}.priceMicros`),
      ...span(r),
    };
  });
  const discounts = f.discounts.map((r, i): Schemas['Discount'] => ({
    ...(r.raw ? { meters: r.raw.meters } : r.meter ? { meters: [r.meter] } : {}),
    basisPoints: rate(r.percent, `spec.discounts[${i}].basisPoints`),
    ...span(r),
  }));
  const address = f.address
    .split('\n')
    .map((l) => l.trim())
    .filter(Boolean);
  const minimumMicros = amount(f.minimum, 'spec.minimumMicros');
  const seller = {
    ...(f.seller.trim() && { name: f.seller.trim() }),
    ...(address.length > 0 && { address }),
    ...(f.taxId.trim() && { taxId: f.taxId.trim() }),
  };
  return {
    spec: {
      currency,
      prices,
      ...(commitments.length > 0 && { commitments }),
      ...(discounts.length > 0 && { discounts }),
      ...(minimumMicros > 0 && { minimumMicros }),
      ...(Object.keys(seller).length > 0 && { seller }),
    },
    problems,
  };
}
