// The order of a list in the address and the API: a field, with "-" in front for descending order.

export type Direction = 'ascending' | 'descending';

export const fieldOf = (sort: string) => sort.replace(/^-/, '');

/** directionOf returns the direction of a field in an order; undefined if it is not sorted by the field. */
export const directionOf = (sort: string, field: string): Direction | undefined =>
  fieldOf(sort) !== field ? undefined : sort.startsWith('-') ? 'descending' : 'ascending';

/** turned returns the order after a click on a field's header: ascending, then descending. */
export const turned = (sort: string, field: string): string => (sort === field ? `-${field}` : field);

export type Value = string | number | boolean | undefined;

/** compare compares two values: undefined first, numbers by size, text as readers expect, with numbers in it by
 * size. */
export function compare(a: Value, b: Value, language = 'en'): number {
  if (a === b) return 0;
  if (a === undefined || a === '') return b === undefined || b === '' ? 0 : -1;
  if (b === undefined || b === '') return 1;
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a).localeCompare(String(b), language, { numeric: true, sensitivity: 'base' });
}

/** sorted returns the rows in an order; rows that compare equal keep theirs. */
export function sorted<T>(
  rows: readonly T[],
  valueOf: ((row: T) => Value) | undefined,
  sort: string,
  language?: string,
) {
  if (!valueOf) return [...rows];
  const way = sort.startsWith('-') ? -1 : 1;
  return [...rows].sort((a, b) => way * compare(valueOf(a), valueOf(b), language));
}
