import type { setup as en } from '../en/setup';

export const setup: Record<keyof typeof en, string> = {
  'setup.title': 'Cluster einrichten',
  'setup.help':
    'Vom leeren Cluster zum ersten Kunden. Jeder Schritt lässt sich überspringen und später hier oder auf seiner eigenen Seite nachholen.',
  'setup.steps': 'Schritte',
  'setup.done': 'erledigt',
  'setup.there': 'Schon da: {what}',
  'setup.nothing': 'Noch ist nichts da.',
  'setup.skip': 'Überspringen',
  'setup.continue': 'Weiter',
  'setup.finish': 'Abschließen',
  'setup.finished': 'Der Cluster ist bereit für Kunden.',
  'setup.card': 'Cluster einrichten',
  'setup.cardHelp': '{done} von {all} Schritten sind erledigt. Noch offen:',
  'setup.dismiss': 'Nicht mehr zeigen',

  'setup.you': 'Sie selbst',
  'setup.youHelp':
    'Der Betreiber eines Clusters darf alles: Wählen Sie ein Passwort, das nur Sie kennen, und schalten Sie Einmalcodes ein.',
  'setup.youTotp': 'Einmalcodes sind eingeschaltet.',
  'setup.youNoTotp': 'Einmalcodes sind ausgeschaltet. So schalten Sie sie im Terminal ein:',
  'setup.passwordOld': 'Jetziges Passwort',
  'setup.passwordNew': 'Neues Passwort',
  'setup.passwordNewHelp': '10 bis 256 Bytes. Ihre anderen Sitzungen enden.',
  'setup.passwordChange': 'Passwort ändern',
  'setup.passwordChanged': 'Das Passwort ist geändert.',

  'setup.brand': 'Name und Aussehen',
  'setup.brandHelp': 'Was Ihre Kunden sehen, wenn sie sich anmelden.',

  'setup.prices': 'Preise',
  'setup.pricesHelp':
    'Die Preisliste default ist mit dem Cluster als Beispiel entstanden: Sehen Sie jeden Preis an, und speichern Sie sie, wenn es Ihre ist. Für eine andere Währung legen Sie eine andere Liste an.',
  'setup.pricesExample': 'Die Preisliste default ist noch das Beispiel.',

  'setup.images': 'Images und Apps',
  'setup.imagesHelp':
    'Instanzen starten von Images; die Apps des Katalogs holen ihres von der Adresse dessen, der es veröffentlicht.',
  'setup.imagesApps': 'Apps: {apps}',
  'setup.import': 'Importieren',
  'setup.importOf': '{name} importieren',
  'setup.importing': '{name} wird importiert',
  'setup.imageReady': 'Da',
  'setup.imageMissing': 'Noch nicht da',

  'setup.sizes': 'Größen und GPUs',
  'setup.sizesHelp':
    'Flavors sind die Größen, aus denen Kunden wählen; Pools sind GPUs, die auf eine Weise geteilt werden.',
  'setup.sizesFlavors': 'Flavors',
  'setup.sizesPools': 'GPU-Pools',
  'setup.sizesGpus': 'Gemeldete GPUs: {n}.',
  'setup.sizesNoGpus': 'Keine GPU hat sich gemeldet. Instanzen laufen ohne; „Knoten und GPUs“ sagt, was fehlt.',

  'setup.customer': 'Erster Kunde',
  'setup.customerHelp': 'Eine Organisation, ein Projekt darin und ein Administrator, der einen Link bekommt.',
  'setup.customerMake': 'Kunden anlegen',
  'setup.customerProject': 'Sein erstes Projekt',
  'setup.customerEmail': 'E-Mail-Adresse seines Administrators',
};
