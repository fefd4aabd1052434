// What narrows and orders a list, as its address says it and as the API is asked.

/** Facet is a filter by one of several values. */
export interface Facet {
  id: string;
  label: string;
  /** What stands there when any value will do. */
  any: string;
  options: readonly { value: string; label: string }[];
  /** A field of the kind, for a field selector; without it id is a parameter of its own. */
  field?: string;
  /** What another choice here makes void. */
  clears?: Narrowing;
}

export type Narrowing = Readonly<Record<string, string>>;

/** namesOf the address's parameters; prefix tells several lists of a page apart. */
export const namesOf = (facets: readonly Pick<Facet, 'id'>[], prefix = ''): string[] =>
  ['search', 'sort', 'labels', ...facets.map((f) => f.id)].map((n) => prefix + n);

/** unprefixed are the parameters by their own names. */
export const unprefixed = (values: Narrowing, prefix: string): Narrowing =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name.slice(prefix.length), value]));

/** A selector's conditions are divided by commas, so a value of an address has none. */
const plain = (value: string) => value.replaceAll(/[,=!]/g, '');

/** asked is a narrowing as the API's parameters; fallback is the order that nobody has chosen. */
export function asked(values: Narrowing, facets: readonly Facet[], fallback: string): Record<string, string> {
  const fields = facets.flatMap((f) => (f.field && values[f.id] ? [`${f.field}=${plain(values[f.id] ?? '')}`] : []));
  const own = facets.filter((f) => !f.field && values[f.id]).map((f) => [f.id, values[f.id] ?? ''] as const);
  return {
    ...Object.fromEntries(own),
    search: values.search ?? '',
    sort: values.sort || fallback,
    labelSelector: values.labels ?? '',
    fieldSelector: fields.join(','),
  };
}

/** narrowed reports whether a list may lack rows because of what was chosen. */
export const narrowed = (values: Narrowing): boolean =>
  Object.entries(values).some(([name, value]) => name !== 'sort' && value !== '');
