// Prices in customary units. The API's price is a number of micro-units of a currency for `per` of a meter's base
// units (seconds, byte-seconds, nanoseconds, bytes). All are integers, which are converted here without loss.
import type { Key } from '../i18n';

const gib = 2n ** 30n;
const tib = 2n ** 40n;
const hour = 3600n;
const month = hour * 24n * 30n; // as in the price book of a new cluster

/** Unit is a unit for the prices of a meter. */
export interface Unit {
  id: string;
  text: Key;
  /** Number of base units. */
  per: bigint;
  /** Name on an invoice. */
  invoice: string;
}

const hours = (invoice: string): Unit[] => [{ id: 'hour', text: 'price.unit.hour', per: hour, invoice }];
const gibs = (what: string): Unit[] => [
  { id: 'gib-hour', text: 'price.unit.gib-hour', per: gib * hour, invoice: `GiB hour of ${what}` },
  { id: 'gib-month', text: 'price.unit.gib-month', per: gib * month, invoice: `GiB month of ${what}` },
];

/** units of each meter; the first is used for new prices. */
export const units: Record<string, Unit[]> = {
  'vcpu-seconds': [{ id: 'vcpu-hour', text: 'price.unit.vcpu-hour', per: hour, invoice: 'vCPU hour' }],
  'memory-byte-seconds': gibs('memory'),
  'volume-byte-seconds': gibs('storage').reverse(),
  'snapshot-byte-seconds': gibs('snapshots').reverse(),
  'address-seconds': hours('hour of a floating IP'),
  'egress-bytes': [
    { id: 'gib', text: 'price.unit.gib', per: gib, invoice: 'GiB sent out' },
    { id: 'tib', text: 'price.unit.tib', per: tib, invoice: 'TiB sent out' },
  ],
  'gpu-nanoseconds': [{ id: 'gpu-hour', text: 'price.unit.gpu-hour', per: hour * 1_000_000_000n, invoice: 'GPU hour' }],
  'gpu-premium-nanoseconds': [
    { id: 'gpu-hour', text: 'price.unit.gpu-hour', per: hour * 1_000_000_000n, invoice: 'GPU hour, premium' },
  ],
  'gpu-basic-nanoseconds': [
    { id: 'gpu-hour', text: 'price.unit.gpu-hour', per: hour * 1_000_000_000n, invoice: 'GPU hour, basic' },
  ],
  'gpu-share-seconds': [
    { id: 'gpu-hour', text: 'price.unit.gpu-hour', per: hour * 100n, invoice: 'reserved GPU hour' },
  ],
  'vram-byte-seconds': gibs('VRAM'),
  'gpu-copy-bytes': [
    { id: 'tib', text: 'price.unit.tib', per: tib, invoice: 'TiB copied' },
    { id: 'gib', text: 'price.unit.gib', per: gib, invoice: 'GiB copied' },
  ],
  'gpu-launches': [{ id: 'million', text: 'price.unit.million', per: 1_000_000n, invoice: 'million launches' }],
};

export const meters = Object.keys(units);

/** unitOf returns the unit of a price, or undefined if it is not one of the meter's. */
export const unitOf = (meter: string, per: number | bigint): Unit | undefined =>
  units[meter]?.find((u) => u.per === BigInt(per));

const micro = 1_000_000n;

/** decimalOf formats micro-units with all their digits. */
export function decimalOf(micros: number | bigint): string {
  const n = BigInt(micros);
  const rest = (n % micro).toString().padStart(6, '0').replace(/0+$/, '');
  return `${n / micro}${rest && `.${rest}`}`;
}

const decimalPattern = /^(\d{1,12})(?:[.,](\d{1,18}))?$/;

export interface Exact {
  priceMicros: bigint;
  per: bigint;
}

const greatest = (a: bigint, b: bigint): bigint => (b === 0n ? a : greatest(b, a % b));
const most = 9_007_199_254_740_991n; // the largest integer that JSON's numbers represent exactly

/** exact converts an entered price per unit. With more than six decimals it becomes the price of several units, so
 * that no digit is lost. */
export function exact(text: string, unit: bigint): Exact | undefined {
  const m = decimalPattern.exec(text.trim());
  if (!m) return undefined;
  const behind = (m[2] ?? '').replace(/0+$/, '');
  const digits = behind.padEnd(6, '0');
  const scale = 10n ** BigInt(Math.max(0, behind.length - 6));
  let [priceMicros, per] = [BigInt(m[1] ?? '0') * 10n ** BigInt(digits.length) + BigInt(digits), unit * scale];
  if (scale > 1n) {
    // The smallest multiple of the unit that keeps every digit.
    const g = greatest(priceMicros, scale);
    [priceMicros, per] = [priceMicros / g, unit * (scale / g)];
  }
  return priceMicros > most || per > most ? undefined : { priceMicros, per };
}

/** shown formats a price per unit as exact parses it; undefined if it is not a finite decimal there. */
export function shown(price: { priceMicros: number | bigint; per: number | bigint }, unit: bigint): string | undefined {
  const [n, per] = [BigInt(price.priceMicros) * unit, BigInt(price.per)];
  const digits = 18n;
  const scaled = n * 10n ** (digits - 6n);
  if (scaled % per !== 0n) return undefined;
  const value = scaled / per;
  const rest = (value % 10n ** digits).toString().padStart(Number(digits), '0').replace(/0+$/, '');
  return `${value / 10n ** digits}${rest && `.${rest}`}`;
}

/** unitFor returns a unit to show a price in: the exact one, else one in which it is a finite decimal. */
export function unitFor(
  meter: string,
  price: { priceMicros: number | bigint; per: number | bigint },
): Unit | undefined {
  return (
    unitOf(meter, price.per) ??
    units[meter]?.find((u) => BigInt(price.per) % u.per === 0n && shown(price, u.per) !== undefined)
  );
}
