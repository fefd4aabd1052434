import type { setup as en } from '../en/setup';

export const setup: Record<keyof typeof en, string> = {
  'setup.title': 'Cluster einrichten',
  'setup.card': 'Cluster einrichten',
  'setup.cardHelp': '{done} von {all} Schritten erledigt. Noch offen:',
  'setup.dismiss': 'Nicht mehr anzeigen',
  'setup.you': 'Ihr Konto',
  'setup.nodes': 'Knoten und Speicher',
  'setup.network': 'Externes Netzwerk',
  'setup.address': 'Adresse und TLS',
  'setup.brand': 'Erscheinungsbild',
  'setup.prices': 'Preise',
  'setup.images': 'Images und Apps',
  'setup.sizes': 'Flavors und GPUs',
  'setup.customer': 'Erster Kunde',
  'setup.machine': 'Erste GPU-Instanz',
};
