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
