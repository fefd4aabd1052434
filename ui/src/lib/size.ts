// A size as it is typed: a number and its unit.
export const units = { MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 } as const;
export type Unit = keyof typeof units;

export interface Size {
  number: string;
  unit: Unit;
}

/** bytesOf a size; 0 of one that is empty or no number. */
export const bytesOf = ({ number, unit }: Size): number => {
  const n = Number(number);
  return Number.isFinite(n) && n > 0 ? Math.round(n * units[unit]) : 0;
};

/** sizeOf bytes, in the largest unit in which they are not below one. */
export function sizeOf(bytes: number): Size {
  const unit = bytes >= units.TiB ? 'TiB' : bytes >= units.GiB ? 'GiB' : 'MiB';
  return { number: bytes ? String(Number((bytes / units[unit]).toFixed(4))) : '', unit };
}

export const isSize = (v: unknown): v is Size => typeof v === 'object' && v !== null && 'number' in v && 'unit' in v;
