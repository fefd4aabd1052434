import type { consoles as en } from '../en/console';

export const consoles: Record<keyof typeof en, string> = {
  'console.kind': 'Art der Konsole',
  'console.serial': 'Seriell',
  'console.screen': 'Bildschirm',
  'console.serialName': 'Serielle Konsole',
  'console.screenName': 'Bildschirm',
  'console.connecting': 'Verbindung wird aufgebaut …',
  'console.open': 'Verbunden.',
  'console.ended': 'Die Maschine hat die Verbindung beendet, etwa weil sie anhält oder neu startet. Neuer Versuch …',
  'console.lost': 'Die Verbindung ist abgebrochen. Neuer Versuch …',
  'console.refused': 'Nicht verbunden: {message}. Neuer Versuch …',
  'console.retry': 'Jetzt versuchen',
  'console.paste': 'Einfügen',
  'console.full': 'Vollbild',
  'console.ctrlAltDel': 'Strg-Alt-Entf senden',
  'console.leave': 'Strg+Umschalt+Eingabe verlässt die Konsole: Alle anderen Tasten gehören der Maschine.',
  'console.serialHelp':
    'Strg+Umschalt+C kopiert, Strg+Umschalt+V fügt ein. Eine serielle Leitung hat keine Größe: Nennen Sie der Maschine diese mit',
  'console.screenHelp': 'Eingefügtes erreicht die Maschine hier nicht: Nehmen Sie dafür die serielle Konsole.',
  'console.stopped': 'Eine Konsole gibt es, solange die Instanz läuft. Ihr Zustand ist: {state}.',
  'console.viewer':
    'Sie dürfen lesen, was die Konsole geschrieben hat, sie aber nicht benutzen: Dazu braucht es die Rolle member.',
  'console.earlier': 'Frühere Ausgabe',
};
