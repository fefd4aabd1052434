import type { conflict as en } from '../en/conflict';

export const conflict: Record<keyof typeof en, string> = {
  'conflict.both': 'Jemand anderes hat das inzwischen geändert',
  'conflict.bothHelp':
    'Das Folgende haben Sie beide geändert. Von Ihnen ist nichts verloren; wählen Sie, dann speichern Sie.',
  'conflict.theirs': 'Dort',
  'conflict.yours': 'Ihres',
  'conflict.take': 'Das andere nehmen',
  'conflict.keep': 'Meines behalten',
  'conflict.taken': 'Jemand anderes hat Felder geändert, die Sie nicht geändert haben',
  'conflict.takenHelp':
    'Das Formular hat jetzt dessen Werte. Was Sie eingegeben haben, steht noch da; prüfen Sie es, dann speichern Sie.',
  'conflict.seen': 'Hinweis auf Änderungen anderer schließen',
  'conflict.nothing': 'nichts',
  'conflict.gone': 'Jemand anderes hat das gelöscht',
  'conflict.goneHelp':
    'Es lässt sich nicht mehr speichern. Was Sie eingegeben haben, steht noch da und kann kopiert werden.',
};
