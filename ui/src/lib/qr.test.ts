import decodeQR from 'qr/decode.js';
import { expect, test } from 'vitest';
import { path, qr } from './qr';

/** read decodes a grid, drawn with modules five pixels wide, as a camera does. */
function read(grid: boolean[][]): string {
  const scale = 5;
  const size = grid.length * scale;
  const data = new Uint8Array(size * size * 4).fill(255);
  for (let y = 0; y < size; y++)
    for (let x = 0; x < size; x++)
      if (grid[Math.floor(y / scale)]![Math.floor(x / scale)]) data.fill(0, (y * size + x) * 4, (y * size + x) * 4 + 3);
  return decodeQR({ width: size, height: size, data });
}

test('a reader finds the text', () => {
  const text =
    'otpauth://totp/Basalt:ada%40example.org?algorithm=SHA1&digits=6&issuer=Basalt&period=30&secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP';
  expect(read(qr(text)!)).toBe(text);
  expect(read(qr('grüße')!)).toBe('grüße');
});

test('four light modules around it', () => {
  const grid = qr('basalt')!;
  expect(grid.length).toBe(21 + 8);
  const edge = grid.filter((row, y) => row.some((dark, x) => dark && (x < 4 || y < 4 || x >= 25 || y >= 25)));
  expect(edge).toEqual([]);
});

test('a text that is too long has none', () => {
  expect(qr('x'.repeat(858))?.length).toBe(97 + 8);
  expect(qr('x'.repeat(859))).toBeUndefined();
  expect(qr('ü'.repeat(430))).toBeUndefined();
});

test('a path has a square for each dark module', () => {
  expect(
    path([
      [true, false],
      [false, true],
    ]),
  ).toBe('M0 0h1v1h-1zM1 1h1v1h-1z');
});
