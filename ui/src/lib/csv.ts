// A table as a file that spreadsheets read: RFC 4180, in UTF-8 with the mark by
// which they know it, numbers as they are, times in UTC.
import type { Value } from './order';

const endOfLine = '\r\n';

/** cell of a file. What a spreadsheet would take for a formula gets an apostrophe before it: names are chosen by others. */
function cell(v: Value): string {
  if (v === undefined) return '';
  if (typeof v !== 'string') return String(v);
  // Also after spaces and quotation marks, as some spreadsheets strip those.
  const safe = /^[\s"']*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/.test(v) ? `'${v}` : v;
  return /[",;\r\n\t]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** csv of a table: its first row are the titles. */
export const csv = (rows: readonly (readonly Value[])[]): string =>
  `\uFEFF${rows.map((r) => r.map(cell).join(',') + endOfLine).join('')}`;

/** fileName of a list as it is at a moment. */
export const fileName = (list: string, now: Date) =>
  `${list}-${now.toISOString().slice(0, 16).replaceAll(/[-:]/g, '')}Z.csv`;
