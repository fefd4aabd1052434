import type { access as en } from '../en/access';

export const access: Record<keyof typeof en, string> = {
  'sec.help': 'Regeln, die im ganzen Cluster gelten.',
  'sec.roles': 'Rollen, die einen zweiten Faktor brauchen',
  'sec.rolesHelp':
    'Benutzer mit diesen Rollen, die sich mit einem Passwort anmelden, brauchen in jeder Organisation Zwei-Faktor-Authentifizierung oder einen Passkey.',
  'sec.encrypt': 'Netzwerke von Instanzen zwischen den Knoten verschlüsseln',
  'sec.encryptHelp':
    'Die Knoten stellen gemeinsam und ohne Unterbrechung um, sobald alle bereit sind. Die Bedingung EncryptionReady jedes Knotens zeigt, worauf er wartet.',
  'sec.saved': 'Sicherheitseinstellungen gespeichert.',
  'sec.asked': 'Wer keinen zweiten Faktor hat, muss zuerst einen einrichten, auch in offenen Sitzungen',
  'sec.without.one': '{n} Benutzer ohne zweiten Faktor',
  'sec.without.other': '{n} Benutzer ohne zweiten Faktor',
  'acr.title': 'Zugriffsprüfung',
  'acr.help':
    'Benutzer, die nicht deaktiviert sind, und alle API-Schlüssel. Was geprüft werden sollte, steht zuerst, die weitesten Rollen vor anderen.',
  'acr.findings': 'Zu prüfen',
  'acr.all': 'Alle',
  'acr.any': 'Irgendetwas zu prüfen',
  'acr.finding.no-second-factor': 'Kein zweiter Faktor',
  'acr.finding.never-used': 'Nie verwendet',
  'acr.finding.unused': 'Länger nicht verwendet',
  'acr.finding.no-expiry': 'Läuft nicht ab',
  'acr.finding.unrestricted': 'Ohne Berechtigungsbereiche und Netzwerke',
  'acr.finding.expired': 'Abgelaufen',
  'acr.kind': 'Art',
  'acr.anyKind': 'Benutzer und API-Schlüssel',
  'acr.kinds.User': 'Benutzer',
  'acr.kinds.APIKey': 'API-Schlüssel',
  'acr.anyRole': 'Jede Rolle',
  'acr.days': 'Nicht verwendet seit',
  'acr.unusedFor': '{n} Tage ohne Verwendung',
  'acr.scopes': 'Berechtigungsbereiche',
  'acr.networks': 'Netzwerke',
  'acr.created': 'Erstellt',
  'acr.empty': 'Niemand hat Zugriff',
  'acr.emptyHelp': 'Benutzer und API-Schlüssel, die Sie auflisten dürfen, erscheinen hier.',
};
