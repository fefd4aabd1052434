import { expect, test } from 'vitest';
import { translation } from '../i18n';
import { en } from '../i18n/en';
import { forecastOf } from './capacity';

const english = translation('en', en);
const gpu = {
  pool: 'default',
  model: 'NVIDIA H100',
  count: 16,
  vramBytes: 1,
  allocatedPercent: 62,
  history: 28,
} as const;

test('a forecast has days and their interval', () => {
  const growing = { ...gpu, trend: 'growing', fullInDays: 20, earliestDays: 15, latestDays: 31 } as const;
  expect(forecastOf(growing, english, false)).toBe('NVIDIA H100: full in about 20 days (15 to 31) at this rate.');
  expect(forecastOf(growing, english, true)).toContain('NVIDIA H100 (default): full');
});

test('without a trend nothing is said, but that a model is full', () => {
  expect(forecastOf({ ...gpu, trend: 'unknown' }, english, false)).toBe('');
  expect(forecastOf({ ...gpu, trend: 'steady' }, english, false)).toBe('');
  expect(forecastOf({ ...gpu, trend: 'full' }, english, false)).toBe('NVIDIA H100: all of it is allocated.');
});
