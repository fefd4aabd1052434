export const wizard = {
  'wizard.help':
    'Set up an empty cluster for its first customer. You can skip any step and complete it later here or on its own page.',
  'wizard.steps': 'Steps',
  'wizard.done': 'Done',
  'wizard.there': 'Existing: {what}',
  'wizard.nothing': 'None yet.',
  'wizard.skip': 'Skip',
  'wizard.continue': 'Continue',
  'wizard.finish': 'Finish',
  'wizard.finished': 'The cluster is ready for customers.',
  'wizard.youHelp':
    'An operator has full control of the cluster. Set a password that only you know, and turn on two-factor authentication.',
  'wizard.nodesHelp':
    'The servers of the cluster, and how much they can store. With three nodes the cluster survives the loss of one.',
  'wizard.networkHelp':
    'The address range that the cluster may assign. Without it, instances cannot reach the internet or be reached from it.',
  'wizard.addressHelp':
    'The address of the portal, which e-mails contain, begins with https://. Its certificate can be requested automatically.',
  'wizard.addressNone': 'The portal has no address yet.',
  'wizard.brandHelp': 'What your customers see when they sign in.',
  'wizard.pricesHelp':
    'The price book “default” contains example prices. Review each price, then save. For another currency, create another price book.',
  'wizard.pricesExample': 'The price book “default” still contains the example prices.',
  'wizard.imagesHelp': 'Instances boot from images. App images are downloaded from their publisher.',
  'wizard.imagesApps': 'Apps: {apps}',
  'wizard.import': 'Import',
  'wizard.importOf': 'Import {name}',
  'wizard.importing': 'Importing {name}',
  'wizard.imageReady': 'Imported',
  'wizard.imageMissing': 'Not imported',
  'wizard.sizesHelp':
    'Flavors are the instance sizes that customers choose from. GPU pools are sets of GPUs that are shared in the same way.',
  'wizard.sizesFlavors': 'Flavors',
  'wizard.sizesPools': 'GPU pools',
  'wizard.sizesGpus': 'GPUs detected: {n}.',
  'wizard.sizesNoGpus': 'No GPUs detected. Instances run without a GPU. See “Nodes and GPUs” for details.',
  'wizard.customerHelp': 'Creates an organization, a project in it, and an administrator who receives a password link.',
  'wizard.customerMake': 'Create customer',
  'wizard.customerProject': 'First project',
  'wizard.customerEmail': 'Administrator’s e-mail address',
  'wizard.machineHelp':
    'Create an instance with a virtual GPU, as your customers will. The step is completed once programs in it can use the GPU: run nvidia-smi in its shell.',
} as const;
