export const conflict = {
  'conflict.both': 'Someone else changed this in the meantime',
  'conflict.bothHelp':
    'You both changed the fields below. Your input is not lost. Choose which values to keep, then save.',
  'conflict.theirs': 'Theirs',
  'conflict.yours': 'Yours',
  'conflict.take': 'Use theirs',
  'conflict.keep': 'Keep mine',
  'conflict.taken': 'Someone else changed other fields',
  'conflict.takenHelp': 'Those values have been loaded into the form. Your input is still here. Review it, then save.',
  'conflict.seen': 'Dismiss',
  'conflict.nothing': 'empty',
  'conflict.gone': 'Someone else deleted this',
  'conflict.goneHelp': 'It can no longer be saved. You can still copy your input.',
} as const;
