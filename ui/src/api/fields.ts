// Errors at the fields that they name.
import { asApiError } from './client';

/** atField is what an error says of a field, or of one below it. */
export function atField(error: unknown, path: string): string | undefined {
  if (!error) return undefined;
  const { field, message, hint } = asApiError(error);
  if (!field || (field !== path && !field.startsWith(`${path}.`) && !field.startsWith(`${path}[`))) return undefined;
  return hint ? `${message}: ${hint}` : message;
}

/** elsewhere is the error, unless one of the form's fields shows it. */
export const elsewhere = (error: unknown, paths: readonly string[]): unknown => (error && paths.some((p) => atField(error, p)) ? null : error);
