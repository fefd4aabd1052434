import type { consoles as en } from '../en/console';

export const consoles: Record<keyof typeof en, string> = {
  'console.kind': 'Konsolentyp',
  'console.shell': 'Shell',
  'console.serial': 'Seriell',
  'console.screen': 'Bildschirm',
  'console.serialName': 'Serielle Konsole',
  'console.screenName': 'Bildschirm',
  'console.shellName': 'Shell',
  'console.connecting': 'Verbindung wird aufgebaut …',
  'console.open': 'Verbunden.',
  'console.ended':
    'Die Instanz hat die Verbindung geschlossen, z. B. weil sie gestoppt oder neu gestartet wurde. Verbindung wird wiederhergestellt …',
  'console.lost': 'Verbindung unterbrochen. Verbindung wird wiederhergestellt …',
  'console.refused': 'Nicht verbunden: {message}. Neuer Versuch …',
  'console.exited': 'Die Shell wurde beendet.',
  'console.refusedShell': 'Nicht verbunden: {message}.',
  'console.again': 'Erneut öffnen',
  'console.retry': 'Jetzt erneut versuchen',
  'console.paste': 'Einfügen',
  'console.full': 'Vollbild',
  'console.ctrlAltDel': 'Strg-Alt-Entf senden',
  'console.leave':
    'Mit Strg+Umschalt+Eingabe verlassen Sie die Konsole. Alle anderen Tasten werden an die Instanz gesendet.',
  'console.serialHelp':
    'Strg+Umschalt+C kopiert, Strg+Umschalt+V fügt ein. Eine serielle Konsole übermittelt ihre Größe nicht. Führen Sie in der Instanz dies aus, um sie zu setzen:',
  'console.shellHelp':
    'Strg+Umschalt+C kopiert, Strg+Umschalt+V fügt ein. Sie sind über das SSH-Gateway als Benutzer des Images angemeldet. Nach einer Stunde ohne Ein- und Ausgabe wird die Shell geschlossen.',
  'console.screenHelp': 'Einfügen wird hier nicht unterstützt. Verwenden Sie dafür die serielle Konsole.',
  'console.stopped': 'Die Konsole ist verfügbar, solange die Instanz läuft. Aktueller Status: {state}.',
  'console.viewer':
    'Sie können die Ausgabe der Konsole lesen. Um die Konsole zu benutzen, brauchen Sie die Rolle Mitglied.',
  'console.earlier': 'Frühere Ausgabe',
};
