import type { branding as en } from '../en/branding';

export const branding: Record<keyof typeof en, string> = {
  'nav.branding': 'Erscheinungsbild',
  'brand.title': 'Erscheinungsbild',
  'brand.help': 'Name und Aussehen des Portals, auch für Benutzer, die nicht angemeldet sind.',
  'brand.name': 'Produktname',
  'brand.nameHelp': 'Ersetzt „Basalt“ im ganzen Portal.',
  'brand.accent': 'Akzentfarbe',
  'brand.accentHelp': 'Für Schaltflächen, z. B. #0b5cad. Weiße Schrift muss darauf lesbar sein.',
  'brand.accentPick': 'Akzentfarbe wählen',
  'brand.accentBad':
    'Weiße Schrift hat auf dieser Farbe ein Kontrastverhältnis von {ratio}; erforderlich sind mindestens 4,5. Wählen Sie eine dunklere Farbe.',
  'brand.accentNone': 'Standard',
  'brand.email': 'Support-E-Mail',
  'brand.url': 'Support-URL',
  'brand.logo': 'Logo',
  'brand.logoHelp': 'PNG, bis zu 64 KiB, 16 bis 512 Pixel breit und hoch.',
  'brand.logoChoose': 'Datei auswählen',
  'brand.logoRemove': 'Logo entfernen',
  'brand.logoNone': 'Das Standardlogo wird verwendet.',
  'brand.logoNow': 'Aktuelles Logo',
  'brand.saved': 'Erscheinungsbild gespeichert.',
  'brand.support': 'Support',
};
