// Light and dark theme: PatternFly's class on the root element.
export const themes = ['system', 'light', 'dark'] as const;
export type Theme = (typeof themes)[number];

const stored = 'basalt.theme';
const dark = () => window.matchMedia('(prefers-color-scheme: dark)');

export const theme = (): Theme => {
  const t = localStorage.getItem(stored);
  return themes.find((x) => x === t) ?? 'system';
};

const show = () =>
  document.documentElement.classList.toggle(
    'pf-v6-theme-dark',
    theme() === 'dark' || (theme() === 'system' && dark().matches),
  );

export function chooseTheme(t: Theme): void {
  localStorage.setItem(stored, t);
  show();
}

/** followTheme applies the theme, and follows the system's if that is chosen. */
export function followTheme(): void {
  show();
  dark().addEventListener('change', show);
}

/** followsTheme reports now, and at each change, whether the page is dark. */
export function followsTheme(say: (dark: boolean) => void): () => void {
  const root = document.documentElement;
  const tell = () => say(root.classList.contains('pf-v6-theme-dark'));
  const seen = new MutationObserver(tell);
  seen.observe(root, { attributeFilter: ['class'] });
  tell();
  return () => seen.disconnect();
}
