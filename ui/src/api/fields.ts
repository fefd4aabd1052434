// Errors for the fields that they name.
import { asApiError } from './client';

const below = (field: string, path: string) =>
  field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);

/** atField returns the message of an error for a field, or for one below it. */
export function atField(error: unknown, path: string): string | undefined {
  if (!error) return undefined;
  const found = asApiError(error).fields.find(({ field }) => below(field, path));
  if (!found) return undefined;
  return found.hint ? `${found.detail}: ${found.hint}` : found.detail;
}
