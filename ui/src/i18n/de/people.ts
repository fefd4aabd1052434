import type { people as en } from '../en/people';

export const people: Record<keyof typeof en, string> = {
  'key.title': 'API-Schlüssel',
  'key.create': 'API-Schlüssel erstellen',
  'key.empty': 'Noch keine API-Schlüssel',
  'key.emptyHelp':
    'Die basalt-CLI, Terraform und Ihre eigenen Programme authentifizieren sich mit einem API-Schlüssel.',
  'key.lastUsed': 'Zuletzt verwendet',
  'key.expires': 'Läuft ab',
  'key.role': 'Rolle',
  'key.days': 'Läuft ab nach (Tagen)',
  'key.daysHelp': '0 = nie.',
  'key.ready': 'API-Schlüssel {name} erstellt',
  'key.secret': 'Geheimnis',
  'key.secretHelp': 'Kopieren Sie das Geheimnis jetzt. Es wird nicht erneut angezeigt.',
  'key.deleteTitle': 'API-Schlüssel {name} löschen?',
  'key.deleteHelp': 'Programme, die ihn verwenden, verlieren sofort den Zugriff.',
  'key.whole': 'Ganze Organisation',

  'mem.mail': 'Link per E-Mail senden',
  'mem.mailed': 'Ein Link an {name} ist unterwegs.',
  'mem.title': 'Mitglieder',
  'mem.invite': 'Mitglied hinzufügen',
  'mem.email': 'E-Mail-Adresse',
  'mem.grants': 'Rollen',
  'mem.lastLogin': 'Letzte Anmeldung',
  'mem.twoFactor': 'Zwei-Faktor-Authentifizierung',
  'mem.on': 'Ein',
  'mem.off': 'Aus',
  'mem.disabled': 'Deaktiviert',
  'mem.empty': 'Noch keine Mitglieder',
  'mem.emptyHelp': 'Fügen Sie Personen hinzu, die Zugriff erhalten sollen.',
  'mem.ready': '{name} hinzugefügt',
  'mem.add': 'Hinzufügen',
  'mem.link': 'Passwort-Link',
  'mem.linkHelp':
    'Senden Sie dem neuen Mitglied diesen Link, um ein Passwort zu setzen. Er kann einmal verwendet werden, bis {until}, und wird nicht erneut angezeigt.',
};
