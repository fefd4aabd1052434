// A size in a form: a number and its unit.
export const units = { MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 } as const;
export type Unit = keyof typeof units;

export interface Size {
  number: string;
  unit: Unit;
}

/** bytesOf returns a size in bytes; 0 if it is empty or not a number. */
export const bytesOf = ({ number, unit }: Size): number => {
  const n = Number(number);
  return Number.isFinite(n) && n > 0 ? Math.round(n * units[unit]) : 0;
};

/** sizeOf converts bytes to the largest unit in which they are at least one. */
export function sizeOf(bytes: number): Size {
  const unit = bytes >= units.TiB ? 'TiB' : bytes >= units.GiB ? 'GiB' : 'MiB';
  return { number: bytes ? String(Number((bytes / units[unit]).toFixed(4))) : '', unit };
}

export const isSize = (v: unknown): v is Size => typeof v === 'object' && v !== null && 'number' in v && 'unit' in v;
