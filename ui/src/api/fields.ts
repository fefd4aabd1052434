// Errors at the fields that they name.
import { useState } from 'react';
import { asApiError } from './client';

const below = (field: string, path: string) => field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);

/** atField is what an error says of a field, or of one below it. */
export function atField(error: unknown, path: string): string | undefined {
  if (!error) return undefined;
  const { field, message, hint } = asApiError(error);
  if (!field || !below(field, path)) return undefined;
  return hint ? `${message}: ${hint}` : message;
}

/** elsewhere is the error, unless one of the form's fields shows it. */
export const elsewhere = (error: unknown, paths: readonly string[]): unknown => (error && paths.some((p) => atField(error, p)) ? null : error);

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
