import type { wizard as en } from '../en/wizard';

export const wizard: Record<keyof typeof en, string> = {
  'wizard.help':
    'Richten Sie einen leeren Cluster für den ersten Kunden ein. Sie können jeden Schritt überspringen und später hier oder auf seiner eigenen Seite nachholen.',
  'wizard.steps': 'Schritte',
  'wizard.done': 'Erledigt',
  'wizard.there': 'Vorhanden: {what}',
  'wizard.nothing': 'Noch keine.',
  'wizard.skip': 'Überspringen',
  'wizard.continue': 'Weiter',
  'wizard.finish': 'Abschließen',
  'wizard.finished': 'Der Cluster ist bereit für Kunden.',
  'wizard.youHelp':
    'Ein Betreiber hat volle Kontrolle über den Cluster. Setzen Sie ein Passwort, das nur Sie kennen, und aktivieren Sie die Zwei-Faktor-Authentifizierung.',
  'wizard.nodesHelp':
    'Die Server des Clusters und wie viel sie speichern können. Mit drei Knoten übersteht der Cluster den Verlust eines Knotens.',
  'wizard.networkHelp':
    'Der Adressbereich, den der Cluster vergeben darf. Ohne ihn erreichen Instanzen das Internet nicht und sind von dort nicht erreichbar.',
  'wizard.addressHelp':
    'Die Adresse des Portals, die in E-Mails steht, beginnt mit https://. Ihr Zertifikat kann automatisch angefordert werden.',
  'wizard.addressNone': 'Das Portal hat noch keine Adresse.',
  'wizard.brandHelp': 'Was Ihre Kunden sehen, wenn sie sich anmelden.',
  'wizard.pricesHelp':
    'Die Preisliste „default“ enthält Beispielpreise. Prüfen Sie jeden Preis und speichern Sie dann. Für eine andere Währung erstellen Sie eine weitere Preisliste.',
  'wizard.pricesExample': 'Die Preisliste „default“ enthält noch die Beispielpreise.',
  'wizard.imagesHelp':
    'Instanzen starten von Images. Die Images der Apps werden von ihrem Herausgeber heruntergeladen.',
  'wizard.imagesApps': 'Apps: {apps}',
  'wizard.import': 'Importieren',
  'wizard.importOf': '{name} importieren',
  'wizard.importing': '{name} wird importiert',
  'wizard.imageReady': 'Importiert',
  'wizard.imageMissing': 'Nicht importiert',
  'wizard.sizesHelp':
    'Flavors sind die Instanzgrößen, aus denen Kunden wählen. GPU-Pools sind Mengen von GPUs, die auf gleiche Weise geteilt werden.',
  'wizard.sizesFlavors': 'Flavors',
  'wizard.sizesPools': 'GPU-Pools',
  'wizard.sizesGpus': 'Erkannte GPUs: {n}.',
  'wizard.sizesNoGpus': 'Keine GPUs erkannt. Instanzen laufen ohne GPU. Näheres unter „Knoten und GPUs“.',
  'wizard.customerHelp':
    'Erstellt eine Organisation, ein Projekt darin und einen Administrator, der einen Passwort-Link erhält.',
  'wizard.customerMake': 'Kunden erstellen',
  'wizard.customerProject': 'Erstes Projekt',
  'wizard.customerEmail': 'E-Mail-Adresse des Administrators',
  'wizard.machineHelp':
    'Erstellen Sie eine Instanz mit einer virtuellen GPU, wie es Ihre Kunden tun werden. Der Schritt ist erledigt, sobald Programme darin die GPU benutzen können: Führen Sie nvidia-smi in ihrer Shell aus.',
};
