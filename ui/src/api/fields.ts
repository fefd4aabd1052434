// Errors at the fields that they name.
import { useState } from 'react';
import { asApiError } from './client';

const below = (field: string, path: string) =>
  field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);

/** atField is what an error says of a field, or of one below it. */
export function atField(error: unknown, path: string): string | undefined {
  if (!error) return undefined;
  const found = asApiError(error).fields.find(({ field }) => below(field, path));
  if (!found) return undefined;
  return found.hint ? `${found.detail}: ${found.hint}` : found.detail;
}

/** elsewhere is the error, unless the form's fields show all of it. */
export const elsewhere = (error: unknown, paths: readonly string[]): unknown => {
  if (!error) return error;
  const { fields } = asApiError(error);
  const shown = (field: string) => paths.some((p) => below(field, p));
  return fields.length > 0 && fields.every(({ field }) => shown(field)) ? null : error;
};

export interface FieldErrors {
  at: (path: string) => string | undefined;
  changed: (path: string) => void;
}

/** useFieldErrors is atField of a form's last answer, until the field is changed. */
export function useFieldErrors(error: unknown): FieldErrors {
  const [old, setOld] = useState<{ error: unknown; paths: readonly string[] }>({ error: null, paths: [] });
  const paths = old.error === error ? old.paths : [];
  return {
    at: (path) => (paths.includes(path) ? undefined : atField(error, path)),
    changed: (path) => {
      if (error && !paths.includes(path)) setOld({ error, paths: [...paths, path] });
    },
  };
}
