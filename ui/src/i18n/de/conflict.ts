import type { conflict as en } from '../en/conflict';

export const conflict: Record<keyof typeof en, string> = {
  'conflict.title': 'Jemand anderes hat das inzwischen geändert',
  'conflict.help': 'Von Ihnen wurde nichts gespeichert; was Sie eingegeben haben, steht noch da.',
  'conflict.merge': 'Laden und meine Eingaben behalten',
  'conflict.discard': 'Laden und meine Eingaben verwerfen',
  'conflict.both': 'Sie haben beide geändert: {fields}. Gezeigt wird, was Sie eingegeben haben; prüfen Sie es und speichern Sie noch einmal.',
};
