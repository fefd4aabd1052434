import type { form as en } from '../en/form';

export const form: Record<keyof typeof en, string> = {
  'form.wrong.one': 'Korrigieren Sie {n} Feld',
  'form.wrong.other': 'Korrigieren Sie {n} Felder',
  'form.file': 'Aus einer Datei laden',
  'form.fileOf': 'Aus einer Datei laden: {field}',
  'form.fileTooLarge': 'Die Datei ist zu groß: höchstens {kib} KiB.',
  'form.leave': 'Ihre Änderungen sind nicht gespeichert. Dieses Formular verlassen?',
  'form.required': 'Erforderlich.',
  'form.number': 'Geben Sie eine Zahl ein.',
  'form.enum': 'Wählen Sie eine der Möglichkeiten.',
  'form.pattern': 'Das hat nicht das richtige Format.',
  'form.pattern.^[A-Z]{3}$': 'Geben Sie drei Großbuchstaben ein, zum Beispiel EUR.',
  'form.value.between': 'Geben Sie {least} bis {most} ein.',
  'form.value.least': 'Geben Sie mindestens {least} ein.',
  'form.value.most': 'Geben Sie höchstens {most} ein.',
  'form.length.between': 'Geben Sie {least} bis {most} Zeichen ein.',
  'form.length.least': 'Geben Sie mindestens {least} Zeichen ein.',
  'form.length.most': 'Geben Sie höchstens {most} Zeichen ein.',
  'form.items.between': 'Geben Sie {least} bis {most} Einträge ein.',
  'form.items.least': 'Geben Sie mindestens {least} Einträge ein.',
  'form.items.most': 'Geben Sie höchstens {most} Einträge ein.',
  'form.format.name':
    'Geben Sie bis zu 63 Kleinbuchstaben, Ziffern und Bindestriche ein, ohne Bindestrich am Anfang oder Ende, zum Beispiel web-1.',
  'form.format.mailbox': 'Geben Sie eine E-Mail-Adresse ein, zum Beispiel ann@example.com.',
  'form.format.host':
    'Geben Sie einen Hostnamen in Kleinbuchstaben ein, zum Beispiel portal.example.com; mit anderen Buchstaben in Punycode (xn--…).',
  'form.format.cidr4':
    'Geben Sie die erste Adresse eines IPv4-Bereichs und seine Länge ein, zum Beispiel 10.20.0.0/24.',
  'form.format.cidr6':
    'Geben Sie die erste Adresse eines IPv6-Bereichs und seine Länge ein, zum Beispiel fd12:3456:789a::/64.',
  'form.format.cidr':
    'Geben Sie die erste Adresse eines Bereichs und seine Länge ein, zum Beispiel 192.0.2.0/24 oder 2001:db8::/32.',
  'form.format.address': 'Geben Sie eine IP-Adresse ein, zum Beispiel 192.0.2.53.',
  'form.format.ports': 'Geben Sie einen Port oder einen Bereich ein, zum Beispiel 80 oder 8000-8080.',
  'form.format.color': 'Geben Sie eine Farbe ein, zum Beispiel #0b5cad.',
  'form.format.sha256': 'Geben Sie die 64 hexadezimalen Ziffern einer SHA-256-Summe ein.',
};
