// Errors for the fields that they name.
import { asApiError } from './client';

const below = (field: string, path: string) =>
  field === path || field.startsWith(`${path}.`) || field.startsWith(`${path}[`);

/** withHint returns a text, which may be a sentence, with what to do. */
export function withHint(text: string, hint?: string): string {
  if (!hint) return text;
  return text.endsWith('.') ? `${text} ${hint.charAt(0).toUpperCase()}${hint.slice(1)}.` : `${text}: ${hint}`;
}

/** atField returns the message of an error for a field, or for one below it. */
export function atField(error: unknown, path: string): string | undefined {
  if (!error) return undefined;
  const found = asApiError(error).fields.find(({ field }) => below(field, path));
  return found && withHint(found.detail, found.hint);
}
