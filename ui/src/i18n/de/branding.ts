import type { branding as en } from '../en/branding';

export const branding: Record<keyof typeof en, string> = {
  'nav.branding': 'Erscheinungsbild',
  'brand.title': 'Erscheinungsbild',
  'brand.help': 'Wie das Portal heißt und aussieht, auch für alle, die nicht angemeldet sind.',
  'brand.name': 'Produktname',
  'brand.nameHelp': 'Anstelle von Basalt.',
  'brand.accent': 'Akzentfarbe',
  'brand.accentHelp': 'Von Schaltflächen, wie #0b5cad. Weiße Schrift muss darauf lesbar sein.',
  'brand.accentPick': 'Akzentfarbe wählen',
  'brand.accentBad': 'Weiße Schrift hat darauf einen Kontrast von {ratio}; nötig sind 4,5. Nehmen Sie eine dunklere.',
  'brand.accentNone': 'Die übliche',
  'brand.email': 'E-Mail-Adresse für Hilfe',
  'brand.url': 'Seite für Hilfe',
  'brand.logo': 'Logo',
  'brand.logoHelp': 'PNG mit höchstens 64 KiB, 16 bis 512 Pixel in jeder Richtung.',
  'brand.logoChoose': 'Datei wählen',
  'brand.logoRemove': 'Logo entfernen',
  'brand.logoNone': 'Gezeigt wird das übliche.',
  'brand.logoNow': 'Das Logo, wie es ist',
  'brand.saved': 'Das Erscheinungsbild ist gespeichert.',
  'brand.support': 'Hilfe',
};
