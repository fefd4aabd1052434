import type { signup as en } from '../en/signup';

export const signup: Record<keyof typeof en, string> = {
  'signUp.title': 'Konto erstellen',
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
};
