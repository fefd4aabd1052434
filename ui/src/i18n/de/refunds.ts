import type { refunds as en } from '../en/refunds';

export const refunds: Record<keyof typeof en, string> = {
  'refund.help':
    'Zahlungen, die ganz oder teilweise an Kunden zurückgegeben wurden. Eine Zahlung wird auf ihrer Seite erstattet.',
  'refund.empty': 'Keine Erstattungen',
  'refund.emptyHelp':
    'Die Zahlungen Ihrer Kunden stehen auf der Seite der Organisation unter Zahlungen und Rechnungen.',
  'refund.none': 'Es wurde nichts erstattet.',
  'refund.noPayments': 'Noch keine Zahlungen.',
  'refund.payment': 'Zahlung',
  'refund.gone': 'Zahlung nicht gefunden',
  'refund.goneHelp': 'Es gibt sie nicht, oder Sie dürfen sie nicht sehen.',
  'refund.refund': 'Erstatten',
  'refund.formTitle': 'Diese Zahlung erstatten?',
  'refund.onlineHelp':
    'Der Zahlungsanbieter gibt das Geld auf die Zahlungskarte des Kunden zurück. Der Kunde erhält eine E-Mail mit dem Grund.',
  'refund.byHandHelp':
    'Überweisen Sie das Geld selbst und erfassen Sie die Überweisung hier. Der Betrag wird sofort vom Guthaben abgezogen. Der Kunde erhält eine E-Mail mit dem Grund.',
  'refund.amountHelp': 'Höchstens {most}.',
  'refund.tooMuch': 'Höchstens {most} können erstattet werden.',
  'refund.reason': 'Grund',
  'refund.reasonHelp': 'Der Kunde liest ihn.',
  'refund.manual': 'Das Geld wurde ohne den Zahlungsanbieter zurückgegeben',
  'refund.referenceHelp': 'Die Referenz der Bank für die Überweisung. Sie zählt einmal.',
  'refund.do': '{amount} erstatten',
  'refund.made': 'Erstellt',
  'refund.error': 'Grund des Fehlschlags',
  'refund.returned': 'Erstattet oder reklamiert',
  'refund.returnedOf': '{amount} erstattet oder reklamiert',
  'refund.refunded': 'Erstattet',
  'refund.disputed': 'Reklamiert',
  'refund.left': 'Kann erstattet werden',
  'refund.nothingLeft': 'Nichts',
  'refund.state.Pending': 'In Arbeit',
  'refund.state.Succeeded': 'Erstattet',
  'refund.state.Failed': 'Fehlgeschlagen, wieder gutgeschrieben',
  'dispute.help':
    'Online-Zahlungen, die der Kunde bei seiner Bank reklamiert hat. Beantworten Sie sie in Stripes Dashboard, wo Sie auch Belege einreichen; hier sehen Sie ihren Stand.',
  'dispute.empty': 'Keine Reklamationen',
  'dispute.emptyHelp': 'Eine Reklamation erscheint hier, wenn eine Bank sie dem Zahlungsanbieter meldet.',
  'dispute.none': 'Sie wurde nicht reklamiert.',
  'dispute.withdrawn': 'Zurückgebucht',
  'dispute.respondBy': 'Antworten bis',
  'dispute.provider': 'ID bei Stripe',
  'dispute.fee': 'Berechnete Gebühr',
  'dispute.closedAt': 'Beendet',
  'dispute.state.Inquiry': 'Anfrage der Bank',
  'dispute.state.NeedsResponse': 'Antwort nötig',
  'dispute.state.UnderReview': 'In Prüfung',
  'dispute.state.Won': 'Gewonnen',
  'dispute.state.Lost': 'Verloren',
  'dispute.state.Closed': 'Geschlossen',
  'sup.help':
    'Adressen, von denen E-Mails zurückkamen. Eine gesperrte Adresse erhält keine gewöhnlichen E-Mails, bis ihr Benutzer sie mit einem Link für ein neues Passwort bestätigt.',
  'sup.helpOperator':
    'Adressen, von denen E-Mails zurückkamen. Eine gesperrte Adresse erhält keine gewöhnlichen E-Mails, bis ihr Benutzer sie mit einem Link für ein neues Passwort bestätigt oder Sie die Sperre aufheben.',
  'sup.empty': 'Es kamen keine E-Mails zurück',
  'sup.emptyHelp':
    'Adressen erscheinen hier, wenn der Cluster das Postfach für zurückgesandte E-Mails liest, das auf der Seite E-Mail eingerichtet wird.',
  'sup.address': 'Adresse',
  'sup.suppressed': 'Gesperrt',
  'sup.temporary.one': '{n} vorübergehender Fehler',
  'sup.temporary.other': '{n} vorübergehende Fehler',
  'sup.returned': 'Zuletzt zurückgekommen',
  'sup.lift': 'Sperre aufheben',
  'sup.liftHelp':
    'Es werden wieder E-Mails an die Adresse gesendet. Kommen sie wieder zurück, wird sie wieder gesperrt.',
};
