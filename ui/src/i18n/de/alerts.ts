import type { alerts as en } from '../en/alerts';

export const alerts: Record<keyof typeof en, string> = {
  'alert.more': 'und {n} weitere',
  'alert.promised.vram': '{bytes} VRAM, von denen {limit} zugewiesen werden dürfen',
  'alert.promised.time': '{share} ihrer Zeit',
  'alert.promised.count': '{n} vGPUs, von denen {limit} erlaubt sind',

  'alert.text.node.lost': 'Der Knoten ist ausgefallen. Ihm zugewiesene Instanzen: {n}.',
  'alert.hint.node.lost':
    'Prüfen Sie seine Stromversorgung und sein Netzwerk. Kommt er nicht zurück, führen Sie auf einem anderen Knoten aus: basalt node remove {name} --force',
  'alert.text.node.suspect': 'Der Knoten antwortet nicht.',
  'alert.hint.node.suspect': 'Prüfen Sie seine Stromversorgung und sein Netzwerk.',
  'alert.text.node.silent': 'Der Knoten hat seinen Status nicht gemeldet.',
  'alert.hint.node.silent':
    'Prüfen Sie auf dem Knoten, ob basaltd läuft, und mit timedatectl seine Uhr. Führen Sie dann journalctl -u basaltd aus.',
  'alert.text.node.clock': 'Die Uhr des Knotens geht {n} s vor.',
  'alert.hint.node.clock': 'Prüfen Sie seine Zeitsynchronisation: timedatectl, chronyc tracking.',
  'alert.text.node.condition': 'Auf dem Knoten funktioniert nicht: {names}.',
  'alert.hint.node.condition': 'Führen Sie auf dem Knoten journalctl -u basaltd aus.',
  'alert.text.node.condition-encryption':
    'Der Knoten tauscht nicht mit allen anderen Knoten verschlüsselte Pakete aus.',
  'alert.hint.node.condition-encryption':
    'Pakete von Instanznetzwerken werden unverschlüsselt gesendet, solange der Grund der Bedingung preparing ist, und sonst gar nicht. Führen Sie auf dem Knoten journalctl -u basaltd aus.',
  'alert.text.node.store': 'Der Knoten hat keine Kopie des Clusterzustands.',
  'alert.hint.node.store':
    'Führen Sie auf dem Knoten basalt node rebuild aus. Damit wird der Zustand von den anderen Knoten kopiert.',
  'alert.text.node.hypervisor': 'Der Knoten kann keine Instanzen starten.',
  'alert.hint.node.hypervisor':
    'Laufende Instanzen sind nicht betroffen. Führen Sie auf dem Knoten systemctl status libvirtd aus, dann journalctl -u basaltd.',
  'alert.text.node.hardware': 'Hardware des Knotens ist ausgefallen: {names}.',
  'alert.hint.node.hardware': 'Einzelheiten zeigt auf dem Knoten basalt doctor hardware --all.',
  'alert.text.node.hardware-worse': 'Hardware des Knotens wird schlechter: {names}.',
  'alert.hint.node.hardware-worse': 'Einzelheiten zeigt auf dem Knoten basalt doctor hardware --all.',
  'alert.text.node.storage': 'Speicherpools des Knotens sind fast voll: {names}. Im vollsten sind noch {percent} frei.',
  'alert.hint.node.storage':
    'Löschen Sie ungenutzte Volumes, Snapshots und Images, oder fügen Sie eine Festplatte hinzu.',
  'alert.text.node.certificate': 'Das Zertifikat des Knotens läuft am {until} ab und wurde nicht erneuert.',
  'alert.hint.node.certificate':
    'Ein Knoten erneuert es automatisch, sobald er den Leader erreicht. Führen Sie auf dem Knoten journalctl -u basaltd aus, und prüfen Sie seine Uhr.',
  'alert.text.node.certificate-expired':
    'Das Zertifikat des Knotens ist abgelaufen. Die anderen Knoten lehnen seine Verbindungen ab.',
  'alert.hint.node.certificate-expired':
    'Lassen Sie ihn erneut beitreten: Führen Sie auf einem anderen Knoten basalt node token create aus, dann auf diesem basalt node join TOKEN.',
  'alert.text.node.usage': 'Der Verbrauch auf dem Knoten wird nicht vollständig erfasst. Laufende Instanzen: {n}.',
  'alert.hint.node.usage':
    'Führen Sie auf dem Knoten journalctl -u basaltd aus, und suchen Sie nach „meter“. Nicht erfasster Verbrauch wird nicht berechnet.',
  'alert.text.cluster.versions': 'Die Knoten haben unterschiedliche Versionen: {names}.',
  'alert.hint.cluster.versions': 'Aktualisieren Sie die Knoten mit der älteren Version, einen nach dem anderen.',
  'alert.text.cluster.store':
    'Kopien des Clusterzustands weichen voneinander ab, und keine Mehrheit der Knoten hat die gleiche Kopie.',
  'alert.hint.cluster.store':
    'Stellen Sie fest, welche Kopie richtig ist: Suchen Sie im Protokoll des Kernels nach Fehlern von Festplatten. Führen Sie dann auf jedem anderen Knoten basalt node rebuild aus.',
  'alert.text.cluster.quorum':
    '{n} von {limit} stimmberechtigten Knoten sind ausgefallen ({names}). Fällt noch einer aus, kann der Cluster nur noch gelesen werden.',
  'alert.hint.cluster.quorum':
    'Stellen Sie zuerst diese wieder her. Kommt einer nicht zurück, führen Sie basalt node remove NAME --force aus.',
  'alert.text.cluster.quorum-two':
    'Der Cluster hat zwei stimmberechtigte Knoten. Fällt einer aus, kann er nur noch gelesen werden.',
  'alert.hint.cluster.quorum-two': 'Fügen Sie einen dritten Knoten hinzu.',
  'alert.text.cluster.upgrade': 'Das Upgrade auf {version} ist angehalten.',
  'alert.hint.cluster.upgrade':
    'Welcher Knoten betroffen ist, zeigt basalt cluster upgrade --status. Ist das Problem behoben, führen Sie basalt cluster upgrade --resume aus.',
  'alert.text.gpu.gone': 'Die GPU wird von ihrem Knoten nicht mehr gemeldet. Instanzen darauf: {n}.',
  'alert.hint.gpu.gone': 'Führen Sie auf dem Knoten nvidia-smi und journalctl -u basalt-gpud aus.',
  'alert.text.gpu.condition': 'Die GPU ist ausgefallen.',
  'alert.hint.gpu.condition': 'Führen Sie auf dem Knoten nvidia-smi und journalctl -u basalt-gpud aus.',
  'alert.text.gpu.promised': 'Von der GPU ist mehr zugewiesen, als ihr Pool erlaubt: {what}.',
  'alert.hint.gpu.promised': 'Verschieben oder stoppen Sie einige ihrer Instanzen, oder ändern Sie den Pool.',
  'alert.text.ceph.failed': 'Ceph kann nicht eingerichtet werden.',
  'alert.hint.ceph.failed': 'Einzelheiten zeigt basalt ceph status.',
  'alert.text.ceph.health': 'Ceph meldet eine Warnung.',
  'alert.hint.ceph.health': 'Einzelheiten zeigt basalt ceph status.',
  'alert.text.ceph.health-error': 'Ceph meldet einen Fehler.',
  'alert.hint.ceph.health-error': 'Einzelheiten zeigt basalt ceph status.',
  'alert.text.disk.failed': 'Die Festplatte ist ausgefallen.',
  'alert.hint.disk.failed': 'Geben Sie sie frei, und ersetzen Sie sie: basalt disk release {name}',
  'alert.text.image.failed': 'Das Image konnte nicht importiert werden.',
  'alert.hint.image.failed': 'Löschen Sie es, und importieren Sie es erneut.',
  'alert.text.instance.failed': 'Die Instanz ist fehlgeschlagen.',
  'alert.hint.instance.failed': 'Prüfen Sie ihre Konsole, und starten Sie sie dann erneut.',
  'alert.text.instance.pending': 'Die Instanz steht seit mehr als 10 Minuten aus.',
  'alert.hint.instance.pending': 'Fügen Sie Kapazität hinzu, oder ändern Sie die Größe der Instanz.',
  'alert.text.instance.tried':
    'Der Knoten kann die Instanz seit mehr als 10 Minuten nicht starten, stoppen oder löschen.',
  'alert.hint.instance.tried': 'Prüfen Sie ihren Verlauf, und führen Sie auf ihrem Knoten journalctl -u basaltd aus.',
  'alert.text.backup-target.failed': 'Das Backup-Ziel ist nicht erreichbar.',
  'alert.hint.backup-target.failed': 'Prüfen Sie sein Verzeichnis oder seinen Bucket, und seine Schlüssel.',
  'alert.text.backup.failed': 'Das Backup ist fehlgeschlagen.',
  'alert.hint.backup.failed': 'Erstellen Sie ein neues Backup.',
  'alert.text.backup.late': 'Das Backup hat nicht begonnen.',
  'alert.hint.backup.late': 'Prüfen Sie den Knoten, der das Volume speichert.',
  'alert.text.backup.late-running': 'Das Backup läuft seit mehr als einem Tag.',
  'alert.hint.backup.late-running': 'Prüfen Sie sein Ziel und das Netzwerk dorthin.',
  'alert.text.network.failed': 'Das Netzwerk funktioniert nicht.',
  'alert.hint.network.failed': 'Führen Sie auf dem Leader journalctl -u basaltd aus.',
  'alert.text.network.failed-external': 'Das externe Netzwerk funktioniert nicht.',
  'alert.hint.network.failed-external': 'Prüfen Sie sein physisches Netzwerk, sein VLAN und seine Adressen.',
  'alert.text.router.failed': 'Der Router hat keine Verbindung nach außen.',
  'alert.hint.router.failed': 'Prüfen Sie das externe Netzwerk, und ob es freie Adressen hat.',
  'alert.text.mail.failing': 'Der Mailserver war {n}-mal in Folge nicht nutzbar.',
  'alert.hint.mail.failing':
    'Prüfen Sie den Mailserver und die E-Mail-Einstellungen. Nachrichten warten einen Tag lang.',
  'alert.text.mail.undelivered': 'In den letzten 24 Stunden konnten E-Mails nicht zugestellt werden.',
  'alert.hint.mail.undelivered': 'Welche und warum, zeigt die Liste der Nachrichten: basalt mail-message list',
  'alert.text.mail.bounced': 'In den letzten 24 Stunden kamen E-Mails zurück.',
  'alert.hint.mail.bounced': 'Welche und warum, zeigt die Liste der Nachrichten: basalt mail-message list',
  'alert.text.mail.suppressed':
    'In den letzten 24 Stunden kamen E-Mails zurück. An diese Adressen werden keine mehr gesendet. Adressen: {n}.',
  'alert.hint.mail.suppressed':
    'Berichtigen Sie die Adressen, oder entfernen Sie sie aus der Liste, damit sie wieder E-Mails erhalten.',
  'alert.text.mail.mailbox-failing':
    'Das Postfach für zurückgesandte E-Mails konnte {n}-mal in Folge nicht gelesen werden.',
  'alert.hint.mail.mailbox-failing':
    'Prüfen Sie den IMAP-Server und die E-Mail-Einstellungen. Bis dahin gelten zurückgesandte E-Mails als gesendet.',
  'alert.text.payments.failing':
    'Beim Zahlungsanbieter konnte {n}-mal in Folge nicht abgefragt werden, was bezahlt wurde.',
  'alert.hint.payments.failing':
    'Prüfen Sie die Zahlungseinstellungen. Was bezahlt wurde, wird erfasst, sobald der Anbieter erreichbar ist.',
  'alert.text.payment.disputed': 'Eine Zahlung wird reklamiert.',
  'alert.hint.payment.disputed': 'Antworten Sie darauf beim Zahlungsanbieter{until}.',
  'alert.until': ', bis {at}',
  'alert.text.vat.invalid': 'VIES kennt die USt-IdNrn. von Kunden nicht ({n}): {names}.',
  'alert.hint.vat.invalid':
    'Fragen Sie sie nach der richtigen Nummer. Bis dahin haben ihre Rechnungen die Steuer eines Kunden ohne Nummer.',
  'alert.text.vat.name': 'VIES hat einen anderen Namen zu den USt-IdNrn. von Kunden ({n}): {names}.',
  'alert.hint.vat.name':
    'Vergleichen Sie beide Namen, und fragen Sie den Kunden. In Rechnungen geht die Steuerschuld trotzdem auf ihn über.',
  'alert.text.vat.unverified': 'VIES gibt keine Auskunft über die USt-IdNrn. von Kunden ({n}): {names}.',
  'alert.hint.vat.unverified':
    'Eine früher bestätigte Nummer gilt 60 Tage lang. Andere Rechnungen haben Steuer, bis VIES antwortet.',
  'alert.text.taxes.undecided':
    'Es werden keine Rechnungen gestellt: Preisbücher hatten vor dem Upgrade unterschiedliche Steuern.',
  'alert.hint.taxes.undecided': 'Legen Sie die Länder der Kunden fest, und speichern Sie die Steuereinstellungen.',
  'alert.text.webhook.failing': 'Der Empfänger hat {n} Zustellungen in Folge abgelehnt.',
  'alert.hint.webhook.failing': 'Prüfen Sie den Empfänger. Ereignisse werden einen Tag lang aufbewahrt.',
  'alert.text.audit.changed': 'Das Audit-Protokoll wurde verändert.',
  'alert.hint.audit.changed':
    'Vergleichen Sie es mit einem Backup und mit der Kopie außerhalb des Clusters. Die Tabellen des Clusters wurden ohne die API geändert.',
  'alert.text.audit.unanchored': 'Das Ende des Audit-Protokolls ist nicht außerhalb des Clusters gespeichert.',
  'alert.hint.audit.unanchored':
    'Setzen Sie --audit-anchor von basaltd auf allen Knoten, und prüfen Sie, ob der genannte Ort beschreibbar ist.',
  'alert.text.audit.unanchored-unverified': 'Das Audit-Protokoll wurde seit einem Tag nicht geprüft.',
  'alert.hint.audit.unanchored-unverified': 'Den Grund nennt das Protokoll des Leaders.',
  'alert.text.invoice.overdue': 'Kunden mit überfälligen Rechnungen ({n}): {names}.',
  'alert.hint.invoice.overdue':
    'Erfassen Sie eingegangene Zahlungen, oder sprechen Sie sie an. Wer eingeschränkt ist, zeigt die Liste der Organisationen.',
};
