export const conflict = {
  'conflict.both': 'Somebody else has changed this meanwhile',
  'conflict.bothHelp': 'You have both changed the following. Nothing of yours is lost; choose, then save.',
  'conflict.theirs': 'Theirs',
  'conflict.yours': 'Yours',
  'conflict.take': 'Take theirs',
  'conflict.keep': 'Keep mine',
  'conflict.taken': 'Somebody else has changed fields that you have not',
  'conflict.takenHelp': 'The form has their values now. What you typed is still here; look at it, then save.',
  'conflict.seen': 'Close the notice of others’ changes',
  'conflict.nothing': 'nothing',
  'conflict.gone': 'Somebody else has deleted this',
  'conflict.goneHelp': 'It cannot be saved any more. What you typed is still here to be copied.',
} as const;
