// Formats numbers, sizes, money and times. Times are in UTC, except for relative times (parts/time.tsx).
import type { Key, Translation } from '../i18n';
import { unitOf, units } from './meter';

/** inLanguage creates a format once per language: creating one takes longer than using it a hundred times. */
function inLanguage<T>(make: (language: string) => T): (language: string) => T {
  const made = new Map<string, T>();
  return (language) => {
    const known = made.get(language) ?? make(language);
    made.set(language, known);
    return known;
  };
}

const rough = inLanguage((l) => new Intl.NumberFormat(l, { maximumFractionDigits: 1 }));
const precise = inLanguage((l) => new Intl.NumberFormat(l, { maximumFractionDigits: 2 }));
const times = inLanguage(
  (l) => new Intl.DateTimeFormat(l, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' }),
);
const seconds = inLanguage(
  (l) => new Intl.DateTimeFormat(l, { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' }),
);
const days = inLanguage((l) => new Intl.DateTimeFormat(l, { dateStyle: 'medium', timeZone: 'UTC' }));
const percents = inLanguage((l) => new Intl.NumberFormat(l, { style: 'percent', maximumFractionDigits: 1 }));

export function formatBytes(n: number, language: string): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  for (; Math.abs(n) >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${(n < 10 ? precise : rough)(language).format(n)} ${units[i]}`;
}

const amounts = new Map<string, Intl.NumberFormat>();

/** money returns a format of amounts, which it creates once. */
function money(language: string, currency: string, maximumFractionDigits: number): Intl.NumberFormat {
  const key = `${language} ${currency} ${maximumFractionDigits}`;
  const known =
    amounts.get(key) ?? new Intl.NumberFormat(language, { style: 'currency', currency, maximumFractionDigits });
  amounts.set(key, known);
  return known;
}

/** formatMicros formats an amount of money; tiny amounts get more digits. */
export function formatMicros(micros: number | bigint, currency: string, language: string): string {
  const value = Number(micros) / 1e6;
  const small = value !== 0 && Math.abs(value) < 1;
  return money(language, currency, small ? 4 : 2).format(value);
}

/** formatNumber formats a number with at most two decimals. */
export const formatNumber = (n: number, language: string) => precise(language).format(n);

export function formatTime(at: string | undefined, language: string): string {
  if (!at) return '';
  return `${times(language).format(new Date(at))} UTC`;
}

/** formatSecond formats a time to the second. */
export const formatSecond = (at: string, language: string) => `${seconds(language).format(new Date(at))} UTC`;

const local = inLanguage((l) => new Intl.DateTimeFormat(l, { dateStyle: 'medium', timeStyle: 'long' }));

/** formatLocal formats a time to the second in the local time zone, and also in UTC if that differs. */
export function formatLocal(at: string, language: string): string {
  const here = local(language).format(new Date(at));
  return new Date(at).getTimezoneOffset() === 0
    ? formatSecond(at, language)
    : `${here} (${formatSecond(at, language)})`;
}

/** formatWait formats a duration in seconds in its largest unit, at least one minute. */
export function formatWait(seconds: number, language: string): string {
  const [unit, size] =
    seconds < 2 * 3600
      ? (['minute', 60] as const)
      : seconds < 48 * 3600
        ? (['hour', 3600] as const)
        : (['day', 86_400] as const);
  return new Intl.NumberFormat(language, { style: 'unit', unit, unitDisplay: 'long' }).format(
    Math.max(1, Math.round(seconds / size)),
  );
}

export const formatDay = (at: string, language: string) => days(language).format(new Date(at));

/** formatPeriod formats a period by its first and last day; to is its exclusive end. */
export const formatPeriod = (from: string, to: string, language: string) =>
  `${formatDay(from, language)} – ${formatDay(new Date(Date.parse(to) - 1).toISOString(), language)}`;

export const formatPercent = (n: number, language: string) => percents(language).format(n / 100);

/** formatQuantity formats a quantity in a unit that its meter is priced in: with the base units of a price (per), in
 * the unit of that price if it is one of the meter's, else in the first of the meter's units. */
export function formatQuantity(
  meter: string,
  n: number,
  { t, language }: Pick<Translation, 't' | 'language'>,
  per?: number,
): string {
  const num = (v: number) => new Intl.NumberFormat(language, { maximumSignificantDigits: 4 }).format(v);
  if (meter.endsWith('-bytes')) return formatBytes(n, language);
  const unit = (per && unitOf(meter, per)) || units[meter]?.[0];
  const text = unit && quantities[unit.id];
  return text ? t(text, { n: num(n / Number(unit.per)) }) : num(n);
}

/** exactMicros formats an amount of money with all its digits. */
export const exactMicros = (micros: number | bigint, currency: string, language: string): string =>
  money(language, currency, 6).format(Number(micros) / 1e6);

/** exactQuantity formats a quantity in base units, which are integers, and with more digits in the unit that
 * formatQuantity uses. */
export function exactQuantity(
  meter: string,
  n: number | bigint,
  { t, language }: Pick<Translation, 't' | 'language'>,
  per?: number,
): string {
  const precise = (v: number) => new Intl.NumberFormat(language, { maximumSignificantDigits: 12 }).format(v);
  const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 }).format(
    typeof n === 'bigint' ? n : BigInt(Math.round(n)),
  );
  const base = bases.find(([end]) => meter.endsWith(end))?.[1];
  // A number is exact up to here only.
  const about = typeof n === 'number' && Math.abs(n) > Number.MAX_SAFE_INTEGER ? '≈ ' : '';
  const exact = `${about}${whole}${base ? ` ${base}` : ''}`;
  const unit = (per && unitOf(meter, per)) || units[meter]?.[0];
  const text = unit && quantities[unit.id];
  return text ? t('unit.exact', { exact, value: t(text, { n: precise(Number(n) / Number(unit.per)) }) }) : exact;
}

/** The base units of meters, by the ends of their names; the first match counts. */
const bases = [
  ['gpu-share-seconds', '% GPU s'],
  ['byte-seconds', 'B s'],
  ['nanoseconds', 'ns'],
  ['vcpu-seconds', 'vCPU s'],
  ['seconds', 's'],
  ['bytes', 'B'],
] as const;

/** Units without a text are counted. */
const quantities: Record<string, Key> = {
  hour: 'unit.hours',
  'vcpu-hour': 'unit.vcpuHours',
  'gpu-hour': 'unit.gpuHours',
  'gib-hour': 'unit.gibHours',
  'gib-month': 'unit.gibMonths',
};
