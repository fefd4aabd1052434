// A table as a file for spreadsheets: RFC 4180, in UTF-8 with a byte order mark, by which they detect it,
// unformatted numbers, times in UTC.
import type { Value } from './order';

const endOfLine = '\r\n';

/** cell formats one cell. A value that a spreadsheet could interpret as a formula gets an apostrophe in front: users
 * choose names. */
function cell(v: Value): string {
  if (v === undefined) return '';
  if (typeof v !== 'string') return String(v);
  // Also after spaces and quotation marks, as some spreadsheets strip those.
  const safe = /^[\s"']*[=+\-@|%\uFF1D\uFF0B\uFF0D\uFF20]|^[\t\r\n]/.test(v) ? `'${v}` : v;
  return /[",;\r\n\t]|^\s|\s$/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** csv formats a table; its first row has the titles. */
export const csv = (rows: readonly (readonly Value[])[]): string =>
  `\uFEFF${rows.map((r) => r.map(cell).join(',') + endOfLine).join('')}`;

/** fileName returns the file name of a list at a point in time. */
export const fileName = (list: string, now: Date) =>
  `${list}-${now.toISOString().slice(0, 16).replaceAll(/[-:]/g, '')}Z.csv`;
