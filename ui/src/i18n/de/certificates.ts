import type { certificates as en } from '../en/certificates';

export const certificates: Record<keyof typeof en, string> = {
  'acme.help':
    'Der Cluster kann Zertifikate für die Hostnamen seiner Portale bei einer Zertifizierungsstelle über ACME anfordern und erneuern. Verbindungen zu Port 443 eines Namens müssen den Cluster erreichen, und kein Proxy darf TLS davor beenden.',
  'acme.settings': 'Anforderung',
  'acme.enabled': 'Zertifikate anfordern und erneuern',
  'acme.enabledHelp': 'Ausgeschaltet werden ausgestellte Zertifikate verwendet, bis sie ablaufen.',
  'acme.directory': 'Verzeichnis der Zertifizierungsstelle',
  'acme.directoryHelp':
    'Z. B. https://acme-v02.api.letsencrypt.org/directory. Ein anderes Verzeichnis erhält ein neues Konto; ausgestellte Zertifikate bleiben, bis sie erneuert werden.',
  'acme.terms': 'Ich akzeptiere die Bedingungen der Zertifizierungsstelle',
  'acme.termsHelp': 'Lesen Sie sie auf ihrer Website. Ihnen wird zugestimmt, wenn das Konto erstellt wird.',
  'acme.email': 'Kontaktadresse',
  'acme.emailHelp': 'Unter der die Zertifizierungsstelle Sie erreicht. Voreinstellung: keine.',
  'acme.saved': 'Einstellungen gespeichert',
  'acme.portal': 'Portal des Clusters',
  'acme.portalHelp':
    'Der Hostname ist der aus der Adresse des Portals in den Mail-Einstellungen. Ein Knoten mit einer Zertifikatsdatei (--tls-cert) fordert dafür keines an.',
  'acme.noAddress':
    'Das Portal hat keine https-Adresse, daher kann dafür kein Zertifikat angefordert werden. Legen Sie sie in den Mail-Einstellungen fest.',
  'acme.domains': 'Portale von Resellern',
  'acme.domainsHelp':
    'Ein Zertifikat, das ein Reseller hinterlegt hat, wird verwendet, solange es gültig ist; bis dahin wird keines angefordert. Hostnamen werden freigegeben und Zertifikate hinterlegt unter',
  'acme.expires': 'Läuft ab',
  'acme.next': 'Nächste Anforderung',
  'acme.problem': 'Letzter Fehler',
  'acme.state.stored': 'Hinterlegt',
  'acme.state.issued': 'Ausgestellt',
  'acme.state.renewing': 'Ausgestellt, Erneuerung fehlgeschlagen',
  'acme.state.requested': 'Wird angefordert',
  'acme.state.failed': 'Fehlgeschlagen',
  'acme.state.limited': 'Zu viele Anforderungen',
  'acme.state.expired': 'Abgelaufen',
  'acme.state.waiting': 'Noch nicht angefordert',
  'acme.state.none': 'Keines',
  'acme.state.unapproved': 'Nicht freigegeben',
};
