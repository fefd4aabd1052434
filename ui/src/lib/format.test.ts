import { expect, test } from 'vitest';
import { en } from '../i18n/en';
import { de } from '../i18n/de';
import { translation } from '../i18n';
import { formatBytes, formatMicros, formatQuantity, formatTime } from './format';

test('sizes', () => {
  expect(formatBytes(0, 'en')).toBe('0 B');
  expect(formatBytes(1536, 'en')).toBe('1.5 KiB');
  expect(formatBytes(1536, 'de')).toBe('1,5 KiB');
  expect(formatBytes(24 * 2 ** 30, 'en')).toBe('24 GiB');
});

test('money', () => {
  expect(formatMicros(12_340_000, 'EUR', 'en')).toBe('€12.34');
  expect(formatMicros(2_778n, 'EUR', 'en')).toBe('€0.0028');
  expect(formatMicros(0, 'EUR', 'en')).toBe('€0.00');
  expect(formatMicros(1_062_778n, 'EUR', 'de')).toBe('1,06\u00a0€');
});

test('quantities are in people’s units', () => {
  expect(formatQuantity('gpu-nanoseconds', 5.4e12, translation('en', en))).toBe('1.5 h');
  expect(formatQuantity('memory-byte-seconds', 2 ** 31 * 3600, translation('de', de))).toBe('2 GiB h');
  expect(formatQuantity('gpu-launches', 12345, translation('en', en))).toBe('12,350');
});

test('times are UTC', () => {
  expect(formatTime('2026-03-01T23:30:00Z', 'en')).toBe('Mar 1, 2026, 11:30 PM UTC');
});
