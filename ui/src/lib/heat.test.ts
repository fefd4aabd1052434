import { expect, test } from 'vitest';
import { heatOf, roomByModel, stepOf } from './heat';
import type { CardFigures } from './pool';

const card = (part: Partial<CardFigures>, status = {}, spec = {}): CardFigures => ({
  gpu: { kind: 'GPU', meta: { name: 'g' }, spec, status: { model: 'H200', ...status } },
  vgpus: 0,
  vramBytes: 100,
  mayPromiseBytes: 100,
  promisedBytes: 0,
  residentBytes: 0,
  swappedBytes: 0,
  sharePercent: 0,
  ...part,
});

test('a GPU is as warm as what is looked at says', () => {
  expect(heatOf(card({ sharePercent: 20, promisedBytes: 75 }), 'allocated')).toEqual({ level: 0.75, value: 75 });
  expect(heatOf(card({ sharePercent: 150 }), 'allocated')).toEqual({ level: 1, value: 150 });
  expect(heatOf(card({}, { busyPercent: 40 }), 'busy')).toEqual({ level: 0.4, value: 40 });
  expect(heatOf(card({ residentBytes: 50 }), 'vram')).toEqual({ level: 0.5, value: 50 });
  expect(heatOf(card({ vramBytes: 0, mayPromiseBytes: 0 }), 'allocated').level).toBe(0);
  expect(heatOf(card({}, { temperatureCelsius: 60 }), 'temperature')).toEqual({ level: 0.5, value: 60 });
  expect(heatOf(card({}), 'temperature')).toEqual({ level: 0 });
});

test('colours are steps, of which the first is nothing', () => {
  expect([0, 0.01, 0.2, 0.21, 1].map(stepOf)).toEqual([0, 1, 1, 2, 5]);
});

test('what is free is divided into whole GPUs and parts of used ones', () => {
  const rooms = roomByModel([
    card({}),
    card({ vgpus: 2, promisedBytes: 60 }),
    card({ vgpus: 1, promisedBytes: 100 }),
    card({}, {}, { unschedulable: true }),
    card({}, { model: 'A10' }),
  ]);
  expect(rooms).toEqual([
    { model: 'A10', gpus: 1, freeBytes: 100, scatteredBytes: 0, whole: 1 },
    { model: 'H200', gpus: 4, freeBytes: 140, scatteredBytes: 40, whole: 1 },
  ]);
});
