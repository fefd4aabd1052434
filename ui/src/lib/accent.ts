// An operator's colour as PatternFly's tokens. In the dark theme a lighter colour of the same hue replaces it, with
// dark text on it, so that both are readable.

type RGB = [number, number, number];

const parse = (hex: string): RGB => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)) as RGB;
const hexOf = (c: RGB) => `#${c.map((v) => Math.round(v).toString(16).padStart(2, '0')).join('')}`;
const mix = (a: RGB, b: RGB, part: number): RGB => a.map((v, i) => v + (b[i]! - v) * part) as RGB;

function luminance(c: RGB): number {
  const [r, g, b] = c.map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4)) as RGB;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

/** contrast returns the contrast ratio of two colours (WCAG 2). */
export function contrast(a: string, b: string): number {
  const [x, y] = [luminance(parse(a)), luminance(parse(b))];
  return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
}

export const isColor = (s: string) => /^#[0-9a-f]{6}$/.test(s);
const least = 4.5;
export const readable = (color: string) => contrast(color, '#ffffff') >= least;

const white: RGB = [255, 255, 255];
const black: RGB = [0, 0, 0];
const night = '#383838'; // PatternFly's lightest background of text in the dark theme
const ink = '#151515';

/** lighter returns the colour in a variant that is readable in the dark theme. */
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

/** tokens returns the tokens for a colour; without one, none. */
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

/** dress applies a colour to the page; the function that it returns stops that. */
export function dress(color: string): () => void {
  const root = document.documentElement;
  const put = () => {
    for (const [name, value] of Object.entries(tokens(color, root.classList.contains('pf-v6-theme-dark')))) {
      if (root.style.getPropertyValue(name) !== value) root.style.setProperty(name, value);
    }
  };
  put();
  const observer = new MutationObserver(put); // for changes of the theme
  observer.observe(root, { attributeFilter: ['class'] });
  return () => observer.disconnect();
}
