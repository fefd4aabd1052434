export const conflict = {
  'conflict.title': 'Somebody else has changed this meanwhile',
  'conflict.help': 'Nothing of yours was saved, and what you typed is still here.',
  'conflict.merge': 'Load it and keep what I typed',
  'conflict.discard': 'Load it and drop what I typed',
  'conflict.both': 'Both of you have changed: {fields}. What you typed is shown; look at it and save again.',
} as const;
