import { expect, test } from 'vitest';
import { path, qr } from './qr';

const draw = (grid: boolean[][] | undefined) => grid?.map((row) => row.map((d) => (d ? '#' : '.')).join(''));

// Held to what another program makes of texts of every version, once.
test('a code as others make it', () => {
  expect(draw(qr('basalt', 3))).toMatchInlineSnapshot(`
    [
      "#######.##..#.#######",
      "#.....#..#..#.#.....#",
      "#.###.#.#.#.#.#.###.#",
      "#.###.#.#..#..#.###.#",
      "#.###.#.###...#.###.#",
      "#.....#.......#.....#",
      "#######.#.#.#.#######",
      ".........##..........",
      "####..#.#.#..#..###.#",
      "#.#.#...#.#.#..#..#.#",
      "..#.#.##.##.#####..##",
      "####.#.####.##...#.##",
      ".#..####.###.#..##...",
      "........##...#...#...",
      "#######..#...##.###..",
      "#.....#....#####.##.#",
      "#.###.#....#..##.####",
      "#.###.#.#....#.#...#.",
      "#.###.#.##.#.#...##..",
      "#.....#.##.##.#.....#",
      "#######.#..##..#..#..",
    ]
  `);
});

test('the smallest version that holds the text', () => {
  expect([17, 18, 230, 231, 858].map((n) => qr('x'.repeat(n), 0)?.length)).toEqual([21, 25, 53, 57, 97]);
  expect(qr('x'.repeat(859))).toBeUndefined();
  expect(qr('ü'.repeat(9), 0)?.length).toBe(25);
});

test('a path has a square for each dark module', () => {
  expect(path([[true, false], [false, true]])).toBe('M0 0h1v1h-1zM1 1h1v1h-1z');
});
