import { expect, test } from 'vitest';
import { daysOf, forecast, rowsOf, stackOf } from './costs';

const period = { from: '2026-11-01T00:00:00Z', to: '2026-12-01T00:00:00Z' };
const cost = (day: string, key: string, amountMicros: number, name?: string) => ({
  from: `2026-11-${day}T00:00:00Z`,
  to: '',
  key,
  amountMicros,
  ...(name && { name }),
});

test('days are those that have begun', () => {
  expect(daysOf(period, new Date('2026-11-03T00:00:01Z'))).toHaveLength(3);
  expect(daysOf(period, new Date('2027-01-01T00:00:00Z')).at(-1)).toBe('2026-11-30T00:00:00.000Z');
  expect(daysOf(period, new Date('2026-10-01T00:00:00Z'))).toEqual([]);
  expect(daysOf({ from: '2026-11-01T12:00:00Z', to: period.to }, new Date('2026-11-02T01:00:00Z'))).toHaveLength(2);
});

test('a resource has its last name', () => {
  expect(rowsOf([cost('01', 'a', 1, 'old'), cost('02', 'b', 5), cost('02', 'a', 1, 'new')])).toEqual([
    { key: 'b', name: '', micros: 5 },
    { key: 'a', name: 'new', micros: 2 },
  ]);
});

test('parts are by what they come to, and all others are the last', () => {
  const items = [cost('01', '', 9), cost('01', 'a', 3), cost('01', 'b', 8), cost('02', '', 1), cost('02', 'a', 1)];
  const days = daysOf(period, new Date('2026-11-02T10:00:00Z'));
  expect(stackOf(items, days).parts).toEqual([
    { key: 'b', name: '', micros: 8, values: [8, 0] },
    { key: 'a', name: '', micros: 4, values: [3, 1] },
    { key: '', name: '', micros: 10, values: [9, 1] },
  ]);
  expect(stackOf([cost('01', 'free', 0)], days).parts).toEqual([]);
});

test('a forecast goes on as before, once a day has passed', () => {
  expect(forecast(100, 7, period, new Date('2026-11-11T00:00:00Z'))).toBe(307);
  expect(forecast(100, 7, period, new Date('2026-11-01T10:00:00Z'))).toBeUndefined();
  expect(forecast(100, 7, period, new Date('2026-12-01T00:00:00Z'))).toBeUndefined();
});
