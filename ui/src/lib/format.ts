// Numbers, sizes, money and times in words. Times are UTC, as everywhere.
import type { Translation } from '../i18n';

const gib = 2 ** 30;

export function formatBytes(n: number, language: string): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let i = 0;
  for (; Math.abs(n) >= 1024 && i < units.length - 1; i++) n /= 1024;
  return `${new Intl.NumberFormat(language, { maximumFractionDigits: n < 10 ? 2 : 1 }).format(n)} ${units[i]}`;
}

/** formatMicros is an amount of money; tiny amounts get more digits. */
export function formatMicros(micros: number | bigint, currency: string, language: string): string {
  const value = Number(micros) / 1e6;
  const small = value !== 0 && Math.abs(value) < 1;
  return new Intl.NumberFormat(language, { style: 'currency', currency, maximumFractionDigits: small ? 4 : 2 }).format(value);
}

export function formatTime(at: string | undefined, language: string): string {
  if (!at) return '';
  return `${new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' }).format(new Date(at))} UTC`;
}

/** formatSecond is a time to the second. */
export const formatSecond = (at: string, language: string) => `${new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'UTC' }).format(new Date(at))} UTC`;

export const formatDay = (at: string, language: string) => new Intl.DateTimeFormat(language, { dateStyle: 'medium', timeZone: 'UTC' }).format(new Date(at));

/** formatPeriod in days, both of which are in it; to is the first moment after. */
export const formatPeriod = (from: string, to: string, language: string) => `${formatDay(from, language)} – ${formatDay(new Date(Date.parse(to) - 1).toISOString(), language)}`;

export const formatPercent = (n: number, language: string) => new Intl.NumberFormat(language, { style: 'percent', maximumFractionDigits: 1 }).format(n / 100);

/** formatQuantity of a meter's units, in hours where they are times. */
export function formatQuantity(meter: string, n: number, { t, language }: Pick<Translation, 't' | 'language'>): string {
  const num = (v: number) => new Intl.NumberFormat(language, { maximumSignificantDigits: 4 }).format(v);
  if (meter.endsWith('-byte-seconds')) return t('unit.gibHours', { n: num(n / gib / 3600) });
  if (meter.endsWith('-nanoseconds')) return t('unit.hours', { n: num(n / 3.6e12) });
  if (meter.endsWith('-seconds')) return t('unit.hours', { n: num(n / 3600) });
  if (meter.endsWith('-bytes')) return formatBytes(n, language);
  return num(n);
}
