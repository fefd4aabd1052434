import type { session as en } from '../en/session';

export const session: Record<keyof typeof en, string> = {
  'signIn.title': 'Anmelden',
  'signIn.subtitle': 'in Ihrer GPU-Cloud',
  'signIn.email': 'E-Mail-Adresse',
  'signIn.password': 'Passwort',
  'signIn.submit': 'Anmelden',
  'signIn.code': 'Einmalcode',
  'signIn.codeHelp': 'Aus Ihrer Authenticator-App, oder ein Wiederherstellungscode.',
  'signIn.verify': 'Prüfen',
  'signIn.back': 'Zurück',
  'signIn.organization': 'Organisation',
  'signIn.ofHelp': 'Ihr Name oder ihre Kennung, wenn eine Organisation Ihr Konto angelegt hat.',
  'signIn.project': 'Projekt',
  'signIn.whichHelp':
    'Sie haben mehrere Rollen. Nennen Sie die Organisation oder das Projekt, in dem Sie arbeiten wollen.',
  'signIn.with': 'Mit {name} anmelden',
  'signIn.or': 'oder',
  'signIn.wait': 'Sie werden angemeldet…',
  'signIn.linkFailed': 'Dieser Link meldet Sie nicht an',
  'signIn.other': 'Anders anmelden',

  'password.title': 'Setzen Sie Ihr Passwort',
  'password.new': 'Neues Passwort',
  'password.submit': 'Passwort setzen',
  'password.done': 'Das Passwort von {email} ist gesetzt.',
};
