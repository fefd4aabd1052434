import type { branding as en } from '../en/branding';

export const branding: Record<keyof typeof en, string> = {
  'brand.title': 'Erscheinungsbild',
  'brand.help': 'Name und Aussehen des Portals, auch für Benutzer, die nicht angemeldet sind.',
  'brand.name': 'Produktname',
  'brand.nameHelp': 'Ersetzt „Basalt“ im ganzen Portal.',
  'brand.accent': 'Akzentfarbe',
  'brand.accentHelp': 'Für Schaltflächen, z. B. #0b5cad. Weiße Schrift muss darauf lesbar sein.',
  'brand.accentPick': 'Akzentfarbe wählen',
  'brand.accentBad':
    'Weiße Schrift hat auf dieser Farbe ein Kontrastverhältnis von {ratio}; erforderlich sind mindestens 4,5. Wählen Sie eine dunklere Farbe.',
  'brand.accentNone': 'Standard',
  'brand.email': 'Support-E-Mail',
  'brand.url': 'Support-URL',
  'brand.logo': 'Logo',
  'brand.logoHelp': 'PNG, bis zu 64 KiB, 16 bis 512 Pixel breit und hoch.',
  'brand.logoChoose': 'Datei auswählen',
  'brand.logoRemove': 'Logo entfernen',
  'brand.logoNone': 'Das Standardlogo wird verwendet.',
  'brand.logoNow': 'Aktuelles Logo',
  'brand.logoChanged':
    'Jetzt wird das aktuelle Logo angezeigt. Wenn Sie es weiterhin ändern möchten, wiederholen Sie die Änderung.',
  'brand.saved': 'Erscheinungsbild gespeichert.',
  'brand.helpReseller':
    'Name und Aussehen Ihres Portals und der E-Mails an Ihre Benutzer und Kunden. Ohne Produktname gelten die Ihres Anbieters.',
  'brand.nameHelpReseller':
    'Auch der Name des Absenders von E-Mails. Ohne ihn haben Sie kein eigenes Erscheinungsbild.',
  'dom.title': 'Hostnamen',
  'dom.help':
    'Namen, unter denen Ihr Portal erreichbar ist. Ein Name gilt, sobald Ihr Anbieter ihn freigegeben hat und er im DNS auf dessen Server zeigt.',
  'dom.helpOperator':
    'Namen, unter denen die Portale von Resellern erreichbar sind. Geben Sie einen Namen nur frei, wenn er dem Reseller gehört.',
  'dom.empty': 'Noch keine Hostnamen',
  'dom.emptyHelp': 'Das Portal ist unter dem Namen des Clusters erreichbar.',
  'dom.request': 'Hostnamen beantragen',
  'dom.requestHelp': 'Der Name gilt erst, wenn ein Betreiber ihn freigibt.',
  'dom.name': 'Hostname',
  'dom.nameHelp': 'Z. B. portal.example.com; mit anderen Buchstaben in Punycode (xn--…).',
  'dom.organization': 'Organisation',
  'dom.organizationChoose': 'Organisation wählen',
  'dom.approved': 'Freigegeben',
  'dom.requested': 'Beantragt',
  'dom.approve': 'Freigeben',
  'dom.approveHelp':
    'Das Portal ist unter diesem Namen mit dem Erscheinungsbild des Resellers erreichbar, und Links in E-Mails verwenden ihn.',
  'dom.withdraw': 'Freigabe zurücknehmen',
  'dom.withdrawHelp': 'Unter dem Namen erscheint ab jetzt das Erscheinungsbild des Clusters.',
  'dom.deleteHelp':
    'Der Name und sein Zertifikat werden gelöscht. Links in gesendeten E-Mails funktionieren dann möglicherweise nicht mehr.',
  'dom.cert': 'Zertifikat',
  'dom.certNone': 'Keines',
  'dom.certUntil': 'Bis {day}',
  'dom.certRequested': 'Bis {day}, wird automatisch erneuert',
  'dom.certExpired': 'Abgelaufen am {day}',
  'dom.certSet': 'Ändern',
  'dom.certSetOf': 'Zertifikat von {name} ändern',
  'dom.certTitle': 'Zertifikat von {name}',
  'dom.certHelp': 'Ersetzen Sie es, bevor es abläuft; es wird nicht automatisch erneuert.',
  'dom.certPem': 'PEM; Zwischenzertifikate dahinter.',
  'dom.key': 'Privater Schlüssel',
  'dom.keyHelp': 'PEM, unverschlüsselt. Er wird verschlüsselt gespeichert und nie angezeigt.',
};
