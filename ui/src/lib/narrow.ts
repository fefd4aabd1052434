// The filters and the order of a list, in its address and in the API's parameters.

/** Facet is a filter by one of several values. */
export interface Facet {
  id: string;
  label: string;
  /** Text of the choice for any value. */
  any: string;
  options: readonly { value: string; label: string }[];
  /** Field of the kind for a field selector; without it, id is a parameter of its own. */
  field?: string;
  /** Values that another choice here clears. */
  clears?: Narrowing;
}

export type Narrowing = Readonly<Record<string, string>>;

/** namesOf returns the names of the address's parameters; prefix distinguishes several lists of a page. */
export const namesOf = (facets: readonly Pick<Facet, 'id'>[], prefix = ''): string[] =>
  ['search', 'sort', 'labels', ...facets.map((f) => f.id)].map((n) => prefix + n);

/** unprefixed returns the parameters without the prefix. */
export const unprefixed = (values: Narrowing, prefix: string): Narrowing =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name.slice(prefix.length), value]));

/** A selector's conditions are separated by commas, so values of an address must not contain any. */
const plain = (value: string) => value.replaceAll(/[,=!]/g, '');

/** asked returns the API's parameters; fallback is the order if none is chosen. */
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

/** narrowed reports whether filters may hide rows of a list. */
export const narrowed = (values: Narrowing): boolean =>
  Object.entries(values).some(([name, value]) => name !== 'sort' && value !== '');
