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
  'signIn.other': 'Auf andere Weise anmelden',
  'signIn.forgot': 'Passwort vergessen?',

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
