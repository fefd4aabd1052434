// An operator's colour as PatternFly's tokens. In the dark a lighter one of the
// same hue takes its place, with dark text on it, so that both can be read.

type RGB = [number, number, number];

const parse = (hex: string): RGB => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as RGB;
const hexOf = (c: RGB) => `#${c.map((v) => Math.round(v).toString(16).padStart(2, '0')).join('')}`;
const mix = (a: RGB, b: RGB, part: number): RGB => a.map((v, i) => v + (b[i]! - v) * part) as RGB;

function luminance(c: RGB): number {
  const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as RGB;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** contrast of two colours: WCAG 2. */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(parse(a)), luminance(parse(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

export const isColor = (s: string) => /^#[0-9a-f]{6}$/.test(s);
const least = 4.5;
export const readable = (color: string) => contrast(color, '#ffffff') >= least;

const white: RGB = [255, 255, 255];
const black: RGB = [0, 0, 0];
const night = '#383838'; // the lightest that PatternFly puts below text in the dark
const ink = '#151515';

/** lighter is the colour as it can be read in the dark. */
export function lighter(color: string): string {
  const c = parse(color);
  for (let part = 0; part < 1; part += 0.04) {
    const found = hexOf(mix(c, white, part));
    if (contrast(found, night) >= least && contrast(found, ink) >= least) return found;
  }
  return '#ffffff';
}

const brand = '--pf-t--global--color--brand--';
const on = '--pf-t--global--text--color--on-brand--';
const states = ['default', 'hover', 'clicked'];

/** tokens for a colour; without one they are taken away. */
export function tokens(color: string, dark: boolean): Record<string, string> {
  if (!isColor(color) || !readable(color))
    return Object.fromEntries(
      states.flatMap((s) => [
        [brand + s, ''],
        [on + s, ''],
      ]),
    );
  const base = dark ? lighter(color) : color;
  const over = hexOf(mix(parse(base), dark ? white : black, 0.25));
  return Object.fromEntries(
    states.flatMap((s) => [
      [brand + s, s === 'default' ? base : over],
      [on + s, dark ? ink : '#ffffff'],
    ]),
  );
}

/** dress the page in a colour; the answer stops it. */
export function dress(color: string): () => void {
  const root = document.documentElement;
  const put = () => {
    for (const [name, value] of Object.entries(tokens(color, root.classList.contains('pf-v6-theme-dark')))) {
      if (root.style.getPropertyValue(name) !== value) root.style.setProperty(name, value);
    }
  };
  put();
  const observer = new MutationObserver(put); // the theme changes
  observer.observe(root, { attributeFilter: ['class'] });
  return () => observer.disconnect();
}
