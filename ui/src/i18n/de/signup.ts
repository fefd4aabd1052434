import type { signup as en } from '../en/signup';

export const signup: Record<keyof typeof en, string> = {
  'signUp.help': 'Ein Link wird an Ihre Adresse gesendet, mit dem Sie das Konto erstellen.',
  'signUp.submit': 'Link senden',
  'signUp.sent': 'Eine Nachricht an {email} ist unterwegs. Folgen Sie dem Link darin innerhalb eines Tages.',
  'signUp.closed': 'Hier kann niemand selbst ein Konto erstellen. Fragen Sie Ihren Anbieter dieses Dienstes.',
  'signUp.captchaFailed':
    'Das Captcha kann nicht angezeigt werden. Prüfen Sie, ob Ihr Browser es blockiert, und laden Sie die Seite neu.',
  'signUp.organizationHelp': 'Kleinbuchstaben, Ziffern und Bindestriche, wie in acme-2.',
  'signUp.name': 'Ihr Name',
  'signUp.passwordHelp': 'Mindestens 10 Zeichen.',
  'signUp.accept': 'Ich akzeptiere die',
  'signUp.terms': 'Nutzungsbedingungen ({version})',
  'signUp.create': 'Konto erstellen',

  'sus.help':
    'Personen können selbst ein Konto erstellen: eine Organisation, die im Voraus bezahlt, mit einem Projekt. Ihre E-Mail-Adresse bestätigen sie zuvor durch einen Link.',
  'sus.helpReseller':
    'Personen können unter den Hostnamen Ihres Portals selbst ein Konto erstellen: eine Organisation, die im Voraus bezahlt, mit einem Projekt, als Ihr Kunde. Ihre E-Mail-Adresse bestätigen sie zuvor durch einen Link. Sie bezahlen, was diese nutzen; ein Startguthaben geben Sie selbst.',
  'sus.enabled': 'Personen können sich registrieren',
  'sus.notAllowed': 'In Ihrem Portal kann sich niemand registrieren, da Ihr Anbieter das nicht erlaubt.',
  'sus.resellers': 'Reseller dürfen Registrierung anbieten',
  'sus.resellersHelp':
    'Die direkt darunter, unter den Hostnamen ihrer eigenen Portale und mit ihren eigenen Einstellungen.',
  'sus.noMail': 'Niemand kann sich registrieren, da der Cluster keine E-Mails sendet.',
  'sus.saved': 'Einstellungen der Registrierung gespeichert.',
  'sus.who': 'Wer sich registrieren kann',
  'sus.termsURL': 'URL der Nutzungsbedingungen',
  'sus.termsURLHelp': 'Wer sich registriert, muss die Nutzungsbedingungen annehmen. Leer lassen, wenn es keine gibt.',
  'sus.termsVersion': 'Version der Nutzungsbedingungen',
  'sus.termsVersionHelp':
    'Wird für jeden Benutzer gespeichert, der sie annimmt, z. B. 2026-03. Geben Sie eine neue ein, wenn sich der Text ändert.',
  'sus.allowed': 'Erlaubte Mail-Domains',
  'sus.allowedHelp': 'Mit ihren Subdomains, durch Kommas getrennt. Leer lassen, um alle zu erlauben.',
  'sus.blocked': 'Gesperrte Mail-Domains',
  'sus.blockedHelp': 'Mit ihren Subdomains, durch Kommas getrennt. Wird zuerst geprüft.',
  'sus.gets': 'Was eine neue Organisation erhält',
  'sus.priceBook': 'Preisliste',
  'sus.defaultBook': 'Die Preisliste „default“',
  'sus.creditName': 'Startguthaben',
  'sus.credit': 'Startguthaben ({currency})',
  'sus.creditHelp': 'Jede neue Organisation erhält es einmal. Leer lassen für keines.',
  'sus.quotaHelp':
    'Kontingent einer neuen Organisation. Wo nichts steht, gelten die Standardlimits aller Organisationen.',
  'sus.captcha': 'Captcha',
  'sus.provider': 'Anbieter',
  'sus.captchaHelp': 'Schützt vor Programmen, die sich registrieren.',
  'sus.siteKey': 'Websiteschlüssel',
  'sus.secret': 'Geheimnis',
  'sus.secretHelp':
    'Leer lassen, um es zu behalten. Es muss neu eingegeben werden, wenn sich Anbieter oder Prüf-URL ändern.',
  'sus.verifyURL': 'Prüf-URL',
  'sus.verifyURLHelp': 'Leer lassen für die des Anbieters.',
};
