import type { create as en } from '../en/create';

export const create: Record<keyof typeof en, string> = {
  'new.title': 'Instanz erstellen',
  'new.project': 'Projekt',
  'new.noProject': 'Noch keine Projekte',
  'new.noProjectHelp': 'Instanzen gehören zu einem Projekt. Erstellen Sie zuerst ein Projekt.',
  'new.noProjectAsk':
    'Instanzen gehören zu einem Projekt. Bitten Sie einen Administrator Ihrer Organisation, eines zu erstellen.',
  'new.name': 'Name',
  'new.nameHelp':
    'Kleinbuchstaben, Ziffern und Bindestriche; 1–63 Zeichen; muss mit einem Buchstaben oder einer Ziffer beginnen und enden.',
  'new.source': 'Image oder App',
  'new.images': 'Images',
  'new.apps': 'Apps',
  'new.appNoImage': '{app} (Image {image} nicht importiert)',
  'new.appPorts': 'Ports: {ports}',
  'new.noImage': 'Noch keine Images. Importieren Sie zuerst eines.',
  'new.flavor': 'Flavor',
  'new.choose': 'Auswählen …',
  'new.vgpu': 'Virtuelle GPU',
  'new.wantVgpu': 'Virtuelle GPU hinzufügen',
  'new.vgpuUnsupported': 'Das Image hat keinen Treiber für eine virtuelle GPU',
  'new.vgpuUnsupportedHelp':
    'Die Instanz wird erstellt, kann ihre GPU aber nicht nutzen. Wählen Sie ein anderes Image oder installieren Sie darin einen Kernel mit dem Modul virtio_gpu.',
  'new.vgpuNewKernel': 'Der Kernel des Images hat keinen Treiber für eine virtuelle GPU',
  'new.vgpuNewKernelHelp':
    'Die Guest-Tools ersetzen den Kernel beim ersten Start, und die Instanz startet einmal neu. Sie braucht ein Netzwerk, das die Pakete ihrer Distribution erreicht.',
  'new.pool': 'GPU-Pool',
  'new.vram': 'VRAM (GiB)',
  'new.share': 'Garantierte GPU-Zeit (%)',
  'new.shareHelp':
    '0 = ohne Garantie (Best Effort). Ungenutzte GPU-Zeit kann über diesen Anteil hinaus genutzt werden und wird berechnet.',
  'new.tier': 'Stufe',
  'new.tierHelp':
    'Priorität bei Konkurrenz. Freie GPU-Zeit wird im Verhältnis 4:2:1 zwischen Premium, Standard und Basic aufgeteilt.',
  'tier.premium': 'Premium – höchste Priorität',
  'tier.standard': 'Standard',
  'tier.basic': 'Basic – niedrigste Priorität',
  'new.networkDefault': 'Ohne Auswahl wird das Netzwerk „default“ des Projekts verwendet.',
  'new.keys': 'Öffentliche SSH-Schlüssel',
  'new.keysHelp':
    'Ein Schlüssel pro Zeile: ein öffentlicher Schlüssel oder der Name eines Ihrer SSH-Schlüssel. Ihre sind eingetragen.',
  'new.userData': 'User-Data für cloud-init',
  'new.userDataApp': 'Leer lassen, um die User-Data der App zu verwenden.',
  'new.submit': 'Erstellen',
  'new.submitShut': 'Ohne Zugang erstellen',
  'new.missing': 'Pflichtfeld.',
  'new.missingAll': 'Pflichtfelder: {fields}',
  'new.noLogin': 'Niemand kann sich an dieser Instanz anmelden',
  'new.noLoginHelp':
    'Sie hat weder einen SSH-Schlüssel noch ein Konsolenpasswort, und ihre User-Data setzen keines. SSH-Schlüssel werden nur beim ersten Start übernommen.',
  'new.price': 'Geschätzter Preis pro Stunde',
  'new.priceHelp':
    'Nach der Preisliste „{book}“ mit Rabatten, vor Mindestabnahmen und Steuern, für die erste Stunde eines Monats.',
  'new.priceNone': 'Es ist keine Preisliste verfügbar.',
  'new.priceCompute': 'vCPUs und Arbeitsspeicher (im Betrieb)',
  'new.priceDisk': 'Systemfestplatte (auch gestoppt)',
  'new.priceVram': 'VRAM (bei voller Nutzung)',
  'new.priceGpu': 'GPU-Zeit',
  'new.priceTotal': 'Geschätzte Summe',
  'new.priceAtShare': 'Beim garantierten Anteil ({percent})',
  'new.priceAtFull': 'Bei voller Nutzung ({percent})',
  'new.priceGpuHelp':
    'GPU-Zeit und VRAM werden nach Verbrauch berechnet. Ungenutzte GPU-Zeit, die über den garantierten Anteil hinaus genutzt wird, wird ebenfalls berechnet, höchstens bis zum Preis bei voller Nutzung.',
  'new.same': 'Entsprechender CLI- / API-Aufruf',
  'new.cli': 'CLI',
  'new.curl': 'curl',
  'new.sameHelp': 'Setzen Sie zuvor BASALT_TOKEN auf einen API-Schlüssel.',
  'new.pickFlavor': 'Wählen Sie einen Flavor, um den Preis zu sehen.',
  'new.password': 'Konsolenpasswort',
  'new.passwordHelp':
    'Für den Standardbenutzer des Images (z. B. debian, ubuntu) an der Konsole, nicht für SSH. Es wird der Instanz als User-Data übergeben, die Programme in der Instanz lesen können.',
  'new.passwordOwn': 'Ihre User-Data legen die Benutzer bereits fest.',
  'new.passwordMake': 'Generieren',
};
