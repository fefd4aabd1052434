import { expect, test } from 'vitest';
import { toggled, wholesaleAt } from './wholesale';

const now = new Date('2026-03-10T12:30:00Z');
const at = (h: number) => `2026-03-10T${String(h).padStart(2, '0')}:00:00Z`;

test('a period begins and ends at the next full hour', () => {
  expect(toggled(undefined, now)).toEqual([{ from: at(13) }]);
  expect(toggled([{ from: at(5) }], now)).toEqual([{ from: at(5), until: at(13) }]);
  expect(toggled([{ from: at(5), until: at(8) }], now)).toEqual([{ from: at(5), until: at(8) }, { from: at(13) }]);
});

test('what has not begun is taken back, and an end that has not come', () => {
  expect(toggled([{ from: at(13) }], now)).toEqual([]);
  expect(toggled([{ from: at(5), until: at(14) }], now)).toEqual([{ from: at(5) }]);
});

test('the period that holds or comes', () => {
  expect(wholesaleAt(undefined, now)).toBeUndefined();
  expect(wholesaleAt([{ from: at(5), until: at(12) }], now)).toBeUndefined();
  expect(wholesaleAt([{ from: at(5), until: at(8) }, { from: at(15) }], now)).toEqual({ from: at(15) });
});
