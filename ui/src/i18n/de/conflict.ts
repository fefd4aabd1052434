import type { conflict as en } from '../en/conflict';

export const conflict: Record<keyof typeof en, string> = {
  'conflict.both': 'Diese Daten wurden inzwischen von jemand anderem geändert',
  'conflict.bothHelp':
    'Die folgenden Felder wurden von beiden geändert. Ihre Eingaben sind nicht verloren. Wählen Sie, welche Werte gelten sollen, und speichern Sie.',
  'conflict.theirs': 'Andere Änderung',
  'conflict.yours': 'Ihre Änderung',
  'conflict.take': 'Andere übernehmen',
  'conflict.keep': 'Meine behalten',
  'conflict.taken': 'Jemand anderes hat andere Felder geändert',
  'conflict.takenHelp':
    'Diese Werte wurden in das Formular übernommen. Ihre Eingaben sind noch vorhanden. Prüfen Sie sie und speichern Sie.',
  'conflict.seen': 'Ausblenden',
  'conflict.nothing': 'leer',
  'conflict.gone': 'Jemand anderes hat dieses Objekt gelöscht',
  'conflict.goneHelp': 'Es kann nicht mehr gespeichert werden. Sie können Ihre Eingaben noch kopieren.',
};
