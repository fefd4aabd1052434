// An invoice's lines in words.
import type { Schemas } from '../api/client';
import type { Translation } from '../i18n';
import { formatMicros, formatPercent } from './format';

type Line = Schemas['InvoiceLine'];

const meterOf = (line: Line, { t, has }: Pick<Translation, 't' | 'has'>) => {
  const key = `meter.${line.meter}`;
  return has(key) ? t(key) : (line.meter ?? '');
};

/** whatOf describes what a line is for; for usage, the resource is shown next to it. */
export function whatOf(line: Line, text: Pick<Translation, 't' | 'has'>): string {
  const { t } = text;
  switch (line.kind) {
    case 'commitment':
      return t('inv.commitment', { meter: meterOf(line, text) });
    case 'minimum':
      return t('inv.minimum');
    case 'tax':
      return line.name ?? '';
    case 'late':
      return t('inv.late', { what: line.meter ? meterOf(line, text) : (line.name ?? t('inv.minimum')) });
    default:
      return meterOf(line, text);
  }
}

/** priceOf returns the price of a line's unit, or what it is a percentage of. */
export function priceOf(
  line: Line,
  currency: string,
  { t, has, language }: Pick<Translation, 't' | 'has' | 'language'>,
): string {
  const key = `price.unit.${(line.unit ?? '').toLowerCase().replaceAll(' ', '-')}`;
  const unit = has(key) ? t(key) : (line.unit ?? new Intl.NumberFormat(language).format(line.per ?? 0));
  const percent = formatPercent((line.basisPoints ?? 0) / 100, language);
  if (line.kind === 'tax') return percent;
  if (line.committed) return t('inv.committed');
  const price = line.per ? t('inv.per', { price: formatMicros(line.priceMicros ?? 0, currency, language), unit }) : '';
  return line.discountMicros ? `${price}, ${t('inv.off', { percent })}` : price;
}
