import type { find as en } from '../en/find';

export const find: Record<keyof typeof en, string> = {
  'find.title': 'Suche',
  'find.label': 'Seiten und Ressourcen nach Name, ID oder Adresse',
  'find.results': 'Suchergebnisse',
  'find.help': 'Mit den Pfeiltasten auswählen, mit Enter öffnen, mit Escape schließen.',
  'find.busy': 'Suche läuft …',
  'find.none': 'Keine Ergebnisse.',
  'find.recent': 'Zuletzt besucht',
  'find.pages': 'Seiten',
  'find.Instance': 'Instanzen',
  'find.Volume': 'Volumes',
  'find.Network': 'Netzwerke',
  'find.Image': 'Images',
  'find.Organization': 'Organisationen',
  'find.Node': 'Knoten',
  'find.User': 'Benutzer',
};
