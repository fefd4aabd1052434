import { expect, test } from 'vitest';
import { contrast, lighter, readable, tokens } from './accent';

test('contrast is that of the server', () => {
  expect(contrast('#000000', '#ffffff')).toBeCloseTo(21);
  expect(readable('#767676')).toBe(true);
  expect(readable('#777777')).toBe(false);
});

test('whatever the colour, it can be read in light and dark', () => {
  for (const c of ['#000000', '#0b5cad', '#8a0000', '#4b0082', '#006400', '#767676', '#a30fa3']) {
    expect(readable(c), c).toBe(true);
    const [light, dark] = [tokens(c, false), tokens(c, true)];
    for (const t of [light, dark])
      for (const s of ['default', 'hover', 'clicked'])
        expect(
          contrast(t[`--pf-t--global--color--brand--${s}`]!, t[`--pf-t--global--text--color--on-brand--${s}`]!),
          `${c} ${s}`,
        ).toBeGreaterThanOrEqual(4.5);
    expect(contrast(lighter(c), '#383838'), c).toBeGreaterThanOrEqual(4.5);
  }
});

test('what cannot be read is not worn', () => {
  for (const c of ['', 'red', '#ffcc00', '#0B5CAD'])
    expect(Object.values(tokens(c, false)).every((v) => v === '')).toBe(true);
});
