import type { revenue as en } from '../en/revenue';

export const revenue: Record<keyof typeof en, string> = {
  'nav.revenue': 'Umsatz',
  'rev.title': 'Umsatz',
  'rev.help':
    'Was die Rechnungen des Zeitraums eingebracht haben, abzüglich der Gutschriften des Zeitraums. Der Verbrauch dieses Monats wird berechnet, wenn der Monat vorbei ist.',
  'rev.period': 'Zeitraum',
  'rev.last12': 'Die letzten 12 Monate',
  'rev.year': 'Das Jahr {year}',
  'rev.by': 'Nach',
  'rev.by.month': 'Monat',
  'rev.by.organization': 'Organisation',
  'rev.by.meter': 'Zähler',
  'rev.net': 'Netto',
  'rev.tax': 'Steuern',
  'rev.gross': 'Brutto',
  'rev.credited': 'Gutgeschrieben',
  'rev.paid': 'Eingegangen',
  'rev.invoices': 'Rechnungen',
  'rev.total': 'Umsatz ohne Steuern',
  'rev.totalPaid': '{paid} im Zeitraum eingegangen',
  'rev.empty': 'In diesem Zeitraum wurde nichts berechnet',
  'rev.emptyHelp':
    'Rechnungen werden ausgestellt, wenn ein Monat vorbei ist, an Organisationen, deren Abrechnung eingeschaltet ist.',
  'rev.minimum': 'Bis zum Mindestbetrag',
  'rev.taxes': 'Steuern',
  'rev.export': 'Verbrauch als CSV',
  'rev.exportFocus': 'Kosten als CSV (FOCUS 1.2)',
  'rev.exports': 'Exporte',
  'rev.exportHelp': 'Von einer Organisation und dem gewählten Monat.',
};
