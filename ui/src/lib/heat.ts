// The colour of a GPU in the map: a number from 0 to 1 for the chosen figure.
import type { CardFigures } from './pool';

export const heats = ['allocated', 'busy', 'vram', 'temperature'] as const;
export type Heat = (typeof heats)[number];

/** Temperatures at the ends of the colour scale, in degrees Celsius. */
const [cool, hot] = [30, 90];

export interface HeatOf {
  /** 0 to 1. */
  level: number;
  /** Percent or degrees Celsius; undefined if not known. */
  value?: number;
}

const level = (part: number) => Math.min(1, Math.max(0, part));

/** heatOf returns the level of a GPU. Its allocation is the larger of its time's and its VRAM's, as that one
 * prevents new allocations. */
export function heatOf(c: CardFigures, by: Heat): HeatOf {
  const { busyPercent = 0, temperatureCelsius = 0 } = c.gpu.status ?? {};
  switch (by) {
    case 'allocated': {
      const value = Math.max(c.sharePercent, c.mayPromiseBytes > 0 ? (100 * c.promisedBytes) / c.mayPromiseBytes : 0);
      return { level: level(value / 100), value };
    }
    case 'busy':
      return { level: level(busyPercent / 100), value: busyPercent };
    case 'vram': {
      const value = c.vramBytes > 0 ? (100 * c.residentBytes) / c.vramBytes : 0;
      return { level: level(value / 100), value };
    }
    case 'temperature':
      return temperatureCelsius > 0
        ? { level: level((temperatureCelsius - cool) / (hot - cool)), value: temperatureCelsius }
        : { level: 0 };
  }
}

/** heatSteps is the number of colours; 0 is used for nothing at all. */
export const heatSteps = 5;
export const stepOf = (l: number) => (l <= 0 ? 0 : Math.min(heatSteps, Math.ceil(l * heatSteps)));

export interface ModelRoom {
  model: string;
  gpus: number;
  /** VRAM that can still be allocated. */
  freeBytes: number;
  /** The part of freeBytes on GPUs that are also in use. */
  scatteredBytes: number;
  /** Number of unused GPUs. */
  whole: number;
}

/** roomByModel returns what can still be allocated of each model, on GPUs that accept new instances. */
export function roomByModel(cards: readonly CardFigures[]): ModelRoom[] {
  const models = new Map<string, ModelRoom>();
  for (const c of cards) {
    const model = c.gpu.status?.model ?? '';
    const r = models.get(model) ?? { model, gpus: 0, freeBytes: 0, scatteredBytes: 0, whole: 0 };
    const free = c.gpu.spec.unschedulable ? 0 : Math.max(0, c.mayPromiseBytes - c.promisedBytes);
    models.set(model, {
      ...r,
      gpus: r.gpus + 1,
      freeBytes: r.freeBytes + free,
      scatteredBytes: r.scatteredBytes + (c.vgpus > 0 ? free : 0),
      whole: r.whole + Number(free > 0 && c.vgpus === 0),
    });
  }
  return [...models.values()].sort((a, b) => a.model.localeCompare(b.model));
}
