import { expect, test } from 'vitest';
import { en } from '../i18n/en';
import { de } from '../i18n/de';
import { translation } from '../i18n';
import { exactMicros, exactQuantity, formatBytes, formatMicros, formatQuantity, formatTime } from './format';

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
  const english = translation('en', en);
  expect(formatQuantity('gpu-nanoseconds', 5.4e12, english)).toBe('1.5 GPU h');
  expect(formatQuantity('gpu-share-seconds', 50 * 7200, english)).toBe('1 GPU h'); // 50 % for two hours
  expect(formatQuantity('vcpu-seconds', 5400, english)).toBe('1.5 vCPU h');
  expect(formatQuantity('address-seconds', 3600, english)).toBe('1 h');
  expect(formatQuantity('unknown-seconds', 3600, english)).toBe('3,600');
  expect(formatQuantity('memory-byte-seconds', 2 ** 31 * 3600, translation('de', de))).toBe('2 GiB h');
  expect(formatQuantity('gpu-launches', 12345, translation('en', en))).toBe('12,350');
});

test('a GiB month is 720 hours, as the price book counts it', () => {
  const english = translation('en', en);
  const month = 2 ** 30 * 3600 * 720;
  expect(formatQuantity('volume-byte-seconds', 20 * month, english)).toBe('20 GiB months');
  expect(formatQuantity('volume-byte-seconds', 20 * month, translation('de', de))).toBe('20 GiB-Monate');
  // In the unit of the line's price, so that quantity times price is the amount.
  expect(formatQuantity('volume-byte-seconds', month, english, 2 ** 30 * 3600)).toBe('720 GiB h');
  expect(formatQuantity('memory-byte-seconds', month, english, month)).toBe('1 GiB months');
  expect(formatQuantity('memory-byte-seconds', month, english, 7)).toBe('720 GiB h');
});

test('times are UTC', () => {
  expect(formatTime('2026-03-01T23:30:00Z', 'en')).toBe('Mar 1, 2026, 11:30 PM UTC');
});

test('exact quantities have all base units, and about is said where a number loses digits', () => {
  const english = translation('en', en);
  expect(exactQuantity('gpu-nanoseconds', 4_444_444_441_234, english)).toBe(
    '1.23456790034 GPU h (4,444,444,441,234 ns)',
  );
  expect(exactQuantity('gpu-share-seconds', 181, english)).toBe('0.000502777777778 GPU h (181 % GPU s)');
  expect(exactQuantity('vcpu-seconds', 5400, english)).toBe('1.5 vCPU h (5,400 vCPU s)');
  expect(exactQuantity('egress-bytes', 1_234_567, english)).toBe('1,234,567 B');
  expect(exactQuantity('gpu-launches', 12_345, english)).toBe('12,345');
  expect(exactQuantity('memory-byte-seconds', 2 ** 62, english)).toBe(
    '1,193,046.47111 GiB h (≈ 4,611,686,018,427,387,904 B s)',
  );
  expect(exactQuantity('memory-byte-seconds', 2n ** 62n + 1n, english)).toBe(
    '1,193,046.47111 GiB h (4,611,686,018,427,387,905 B s)',
  );
  expect(exactQuantity('volume-byte-seconds', 2 ** 30 * 3600, english, 2 ** 30 * 3600)).toBe(
    '1 GiB h (3,865,470,566,400 B s)',
  );
});

test('exact amounts have all millionths', () => {
  expect(exactMicros(1_234_567, 'EUR', 'en')).toBe('€1.234567');
  expect(exactMicros(1_500_000, 'EUR', 'de')).toBe('1,50\u00a0€');
});
