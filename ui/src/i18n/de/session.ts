import type { session as en } from '../en/session';

export const session: Record<keyof typeof en, string> = {
  'signIn.title': 'Anmelden',
  'signIn.subtitle': 'in Ihrer GPU-Cloud',
  'signIn.email': 'E-Mail-Adresse',
  'signIn.password': 'Passwort',
  'signIn.submit': 'Anmelden',
  'signIn.code': 'Einmalcode',
  'signIn.codeHelp': 'Aus Ihrer Authenticator-App, oder ein Wiederherstellungscode.',
  'signIn.verify': 'Bestätigen',
  'signIn.back': 'Zurück',
  'signIn.organization': 'Organisation',
  'signIn.ofHelp': 'Name oder ID, wenn Ihr Konto zu einer Organisation gehört.',
  'signIn.project': 'Projekt',
  'signIn.whichHelp':
    'Sie haben mehrere Rollen. Geben Sie die Organisation oder das Projekt an, in dem Sie arbeiten möchten.',
  'signIn.with': 'Mit {name} anmelden',
  'signIn.or': 'oder',
  'signIn.wait': 'Anmeldung läuft …',
  'signIn.linkFailed': 'Dieser Anmeldelink ist nicht gültig',
  'signIn.refused': 'Der Identitätsanbieter hat Ihre Identität nicht bestätigt',
  'signIn.other': 'Auf andere Weise anmelden',
  'signIn.byOrganization': 'Mit Ihrer Organisation anmelden',
  'signIn.forgot': 'Passwort vergessen?',

  'pass.title': 'Passkeys',
  'pass.help':
    'Melden Sie sich mit Fingerabdruck, Gesicht oder PIN statt mit einem Passwort an. Ein Passkey ersetzt auch den Einmalcode.',
  'pass.add': 'Passkey hinzufügen',
  'pass.addHelp': 'Ihr Browser fragt danach, wo er aufbewahrt werden soll.',
  'pass.nameHelp': 'Zum Beispiel das Gerät, das ihn aufbewahrt.',
  'pass.added': 'Hinzugefügt',
  'pass.synced': 'synchronisiert',
  'pass.elsewhere': 'für {name}',
  'pass.empty': 'Noch keine Passkeys',
  'pass.emptyHelp':
    'Fügen Sie einen Passkey dieses Geräts, Ihres Passwortmanagers oder eines Sicherheitsschlüssels hinzu.',
  'pass.deleteTitle': 'Passkey {name} löschen?',
  'pass.deleteHelp':
    'Mit ihm können Sie sich nicht mehr anmelden. Löschen Sie ihn auch auf dem Gerät oder im Passwortmanager.',
  'pass.unavailable':
    'Passkeys sind nicht verfügbar: Sie brauchen ein Portal mit Domainnamen und HTTPS. Fragen Sie Ihren Betreiber.',
  'pass.browser': 'Dieser Browser kann auf dieser Seite keine Passkeys verwenden.',
  'pass.cancelled': 'Der Browser hat keinen Passkey erstellt oder gefunden, oder Sie haben abgebrochen.',
  'pass.failed': 'Der Browser kann hier keinen Passkey verwenden. Vielleicht gibt es für Ihr Konto schon einen.',
  'pass.signIn': 'Mit einem Passkey anmelden',

  'forgot.title': 'Passwort vergessen?',
  'forgot.help': 'Geben Sie Ihre E-Mail-Adresse ein, um einen Link zu erhalten, der ein neues Passwort setzt.',
  'forgot.submit': 'Link senden',
  'forgot.sent': 'Wenn {email} hier ein Passwort hat, ist ein Link dorthin unterwegs. Er gilt eine Stunde.',
  'forgot.back': 'Zurück zur Anmeldung',

  'password.title': 'Passwort setzen',
  'password.new': 'Neues Passwort',
  'password.submit': 'Passwort setzen',
  'password.done': 'Passwort von {email} gesetzt.',
};
