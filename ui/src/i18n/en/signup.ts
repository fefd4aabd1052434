export const signup = {
  'signUp.title': 'Create an account',
  'signUp.help': 'A link is sent to your address, with which you create the account.',
  'signUp.submit': 'Send the link',
  'signUp.sent': 'A message is on its way to {email}. Follow the link in it within a day.',
  'signUp.closed': 'Nobody can create an account here by themselves. Ask your provider of this service.',
  'signUp.captchaFailed': 'The captcha cannot be shown. Check whether your browser blocks it, and reload the page.',
  'signUp.organizationHelp': 'Lower-case letters, digits and hyphens, as in acme-2.',
  'signUp.name': 'Your name',
  'signUp.passwordHelp': 'At least 10 characters.',
  'signUp.accept': 'I accept the',
  'signUp.terms': 'terms of service ({version})',
  'signUp.create': 'Create the account',
} as const;
