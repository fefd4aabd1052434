// Names of objects that others refer to.

export type Named = { meta: { id?: string; name: string } }[] | undefined;

/** nameIn returns the name of the object with an ID: the ID while it is unknown, and a dash without an ID. */
export const nameIn = (items: Named, id: string | undefined): string =>
  items?.find((o) => o.meta.id === id)?.meta.name ?? id ?? '–';
