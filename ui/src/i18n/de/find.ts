import type { find as en } from '../en/find';

export const find: Record<keyof typeof en, string> = {
  'find.open': 'Alles durchsuchen (Strg-K)',
  'find.title': 'Suche',
  'find.label': 'Seiten und Objekte nach Name, ID oder Adresse',
  'find.results': 'Was gefunden wurde',
  'find.help': 'Pfeiltasten wählen, Enter öffnet, Escape schließt.',
  'find.busy': 'Sucht…',
  'find.none': 'Nichts gefunden.',
  'find.recent': 'Zuletzt',
  'find.pages': 'Seiten',
  'find.Instance': 'Instanzen',
  'find.Volume': 'Volumes',
  'find.Network': 'Netze',
  'find.Image': 'Images',
  'find.Organization': 'Organisationen',
  'find.Node': 'Knoten',
  'find.User': 'Benutzer',
};
