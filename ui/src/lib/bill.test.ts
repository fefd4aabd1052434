import { expect, test } from 'vitest';
import { translation } from '../i18n';
import { de } from '../i18n/de';
import { en } from '../i18n/en';
import { priceOf, whatOf } from './bill';

const english = translation('en', en);
const line = {
  id: 'line-1',
  kind: 'usage' as const,
  amountMicros: 1_350_000,
  meter: 'gpu-nanoseconds',
  per: 3_600_000_000_000,
  priceMicros: 1_800_000,
  unit: 'GPU hour',
};

test('what a line is for', () => {
  expect(whatOf(line, english)).toBe('GPU time');
  expect(whatOf({ ...line, meter: 'of-the-future' }, english)).toBe('of-the-future');
  expect(whatOf({ id: 'l', kind: 'tax', name: 'VAT', basisPoints: 1900, amountMicros: 1 }, english)).toBe('VAT');
  expect(whatOf({ ...line, kind: 'late' }, english)).toBe('From an earlier month: GPU time');
  expect(whatOf({ id: 'l', kind: 'late', amountMicros: 1 }, english)).toBe('From an earlier month: Minimum charge');
});

test('what a unit of it costs', () => {
  expect(priceOf(line, 'EUR', english)).toBe('€1.80 per GPU-hour');
  expect(priceOf(line, 'EUR', translation('de', de))).toBe('1,80\u00a0€ pro GPU-Stunde');
  expect(priceOf({ ...line, unit: 'rack' }, 'EUR', english)).toBe('€1.80 per rack');
  expect(priceOf({ ...line, unit: undefined, per: 1000 }, 'EUR', english)).toBe('€1.80 per 1,000');
  expect(priceOf({ ...line, basisPoints: 1250, discountMicros: 5 }, 'EUR', english)).toBe(
    '€1.80 per GPU-hour, 12.5% discount',
  );
  expect(priceOf({ ...line, committed: true }, 'EUR', english)).toBe('Covered by a commitment');
  expect(priceOf({ id: 'l', kind: 'tax', basisPoints: 1900, amountMicros: 1 }, 'EUR', english)).toBe('19%');
  expect(priceOf({ id: 'l', kind: 'minimum', amountMicros: 1 }, 'EUR', english)).toBe('');
});
