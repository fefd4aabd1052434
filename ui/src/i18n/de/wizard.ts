import type { wizard as en } from '../en/wizard';

export const wizard: Record<keyof typeof en, string> = {
  'setup.help':
    'Richten Sie einen leeren Cluster für den ersten Kunden ein. Sie können jeden Schritt überspringen und später hier oder auf seiner eigenen Seite nachholen.',
  'setup.steps': 'Schritte',
  'setup.done': 'Erledigt',
  'setup.there': 'Vorhanden: {what}',
  'setup.nothing': 'Noch keine.',
  'setup.skip': 'Überspringen',
  'setup.continue': 'Weiter',
  'setup.finish': 'Abschließen',
  'setup.finished': 'Der Cluster ist bereit für Kunden.',
  'setup.youHelp':
    'Ein Betreiber hat volle Kontrolle über den Cluster. Setzen Sie ein Passwort, das nur Sie kennen, und aktivieren Sie die Zwei-Faktor-Authentifizierung.',
  'setup.nodesHelp':
    'Die Server des Clusters und wie viel sie speichern können. Mit drei Knoten übersteht der Cluster den Verlust eines Knotens.',
  'setup.networkHelp':
    'Der Adressbereich, den der Cluster vergeben darf. Ohne ihn erreichen Instanzen das Internet nicht und sind von dort nicht erreichbar.',
  'setup.addressHelp':
    'Die Adresse des Portals, die in E-Mails steht, beginnt mit https://. Ihr Zertifikat kann automatisch angefordert werden.',
  'setup.addressNone': 'Das Portal hat noch keine Adresse.',
  'setup.brandHelp': 'Was Ihre Kunden sehen, wenn sie sich anmelden.',
  'setup.pricesHelp':
    'Die Preisliste „default“ enthält Beispielpreise. Prüfen Sie jeden Preis und speichern Sie dann. Für eine andere Währung erstellen Sie eine weitere Preisliste.',
  'setup.pricesExample': 'Die Preisliste „default“ enthält noch die Beispielpreise.',
  'setup.imagesHelp': 'Instanzen starten von Images. Die Images der Apps werden von ihrem Herausgeber heruntergeladen.',
  'setup.imagesApps': 'Apps: {apps}',
  'setup.import': 'Importieren',
  'setup.importOf': '{name} importieren',
  'setup.importing': '{name} wird importiert',
  'setup.imageReady': 'Importiert',
  'setup.imageMissing': 'Nicht importiert',
  'setup.sizesHelp':
    'Flavors sind die Instanzgrößen, aus denen Kunden wählen. GPU-Pools sind Mengen von GPUs, die auf gleiche Weise geteilt werden.',
  'setup.sizesFlavors': 'Flavors',
  'setup.sizesPools': 'GPU-Pools',
  'setup.sizesGpus': 'Erkannte GPUs: {n}.',
  'setup.sizesNoGpus': 'Keine GPUs erkannt. Instanzen laufen ohne GPU. Näheres unter „Knoten und GPUs“.',
  'setup.customerHelp':
    'Erstellt eine Organisation, ein Projekt darin und einen Administrator, der einen Passwort-Link erhält.',
  'setup.customerMake': 'Kunden erstellen',
  'setup.customerProject': 'Erstes Projekt',
  'setup.customerEmail': 'E-Mail-Adresse des Administrators',
  'setup.machineHelp':
    'Erstellen Sie eine Instanz mit einer virtuellen GPU, wie es Ihre Kunden tun werden. Der Schritt ist erledigt, sobald Programme darin die GPU benutzen können: Führen Sie nvidia-smi in ihrer Shell aus.',
};
