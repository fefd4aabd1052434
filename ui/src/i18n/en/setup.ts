export const setup = {
  'setup.title': 'Set up the cluster',
  'setup.help':
    'From an empty cluster to the first customer. Every step can be skipped, and done later here or on its own page.',
  'setup.steps': 'Steps',
  'setup.done': 'done',
  'setup.there': 'There already: {what}',
  'setup.nothing': 'Nothing is there yet.',
  'setup.skip': 'Skip',
  'setup.continue': 'Continue',
  'setup.finish': 'Finish',
  'setup.finished': 'The cluster is ready for customers.',
  'setup.card': 'Set up the cluster',
  'setup.cardHelp': '{done} of {all} steps are done. Still open:',
  'setup.dismiss': 'Do not show this again',

  'setup.you': 'You',
  'setup.youHelp': 'A cluster’s operator can do everything: a password that only you know, and one-time codes.',
  'setup.youTotp': 'One-time codes are on.',
  'setup.youNoTotp': 'One-time codes are off. Turn them on from a terminal:',
  'setup.passwordOld': 'Present password',
  'setup.passwordNew': 'New password',
  'setup.passwordNewHelp': '10 to 256 bytes. Your other sessions end.',
  'setup.passwordChange': 'Change the password',
  'setup.passwordChanged': 'The password is changed.',

  'setup.brand': 'Name and looks',
  'setup.brandHelp': 'What your customers see when they sign in.',

  'setup.prices': 'Prices',
  'setup.pricesHelp':
    'The price book named default was made with the cluster, as an example: look at each price, and save it when it is yours. For another currency make another book.',
  'setup.pricesExample': 'The price book default is still the example.',

  'setup.images': 'Images and apps',
  'setup.imagesHelp':
    'Instances start from images; the catalogue’s apps bring theirs from the address of who publishes it.',
  'setup.imagesApps': 'Apps: {apps}',
  'setup.import': 'Import',
  'setup.importOf': 'Import {name}',
  'setup.importing': '{name} is being imported',
  'setup.imageReady': 'There',
  'setup.imageMissing': 'Not there yet',

  'setup.sizes': 'Sizes and GPUs',
  'setup.sizesHelp':
    'Flavors are the sizes that customers choose from, pools are sets of GPUs that are shared in one way.',
  'setup.sizesFlavors': 'Flavors',
  'setup.sizesPools': 'GPU pools',
  'setup.sizesGpus': 'GPUs that have reported: {n}.',
  'setup.sizesNoGpus': 'No GPU has reported. Instances run without; “Nodes and GPUs” says what is missing.',

  'setup.customer': 'First customer',
  'setup.customerHelp': 'An organization, a project in it, and an administrator who gets a link.',
  'setup.customerMake': 'Make the customer',
  'setup.customerProject': 'Its first project',
  'setup.customerEmail': 'E-mail address of its administrator',
} as const;
