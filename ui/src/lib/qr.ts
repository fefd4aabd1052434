// QR codes for authenticators, with the quiet zone of four modules around them that cameras need.
import encodeQR from 'qr';

/** Bytes of the longest text: the capacity of version 20. Larger codes have modules too small for a camera. */
const maxBytes = 858;

/** qr returns the code of a text in rows, true for dark; undefined when the text is too long. */
export function qr(text: string): boolean[][] | undefined {
  if (new TextEncoder().encode(text).length > maxBytes) return undefined;
  return encodeQR(text, 'raw', { ecc: 'low', encoding: 'byte', border: 4 });
}

/** path returns an SVG path with a square of one unit for each dark module. */
export const path = (grid: boolean[][]): string =>
  grid.flatMap((row, y) => row.map((dark, x) => (dark ? `M${x} ${y}h1v1h-1z` : ''))).join('');
