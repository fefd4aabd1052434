export const wizard = {
  'setup.help':
    'Set up an empty cluster for its first customer. You can skip any step and complete it later here or on its own page.',
  'setup.steps': 'Steps',
  'setup.done': 'Done',
  'setup.there': 'Existing: {what}',
  'setup.nothing': 'None yet.',
  'setup.skip': 'Skip',
  'setup.continue': 'Continue',
  'setup.finish': 'Finish',
  'setup.finished': 'The cluster is ready for customers.',
  'setup.youHelp':
    'An operator has full control of the cluster. Set a password that only you know, and turn on two-factor authentication.',
  'setup.nodesHelp':
    'The servers of the cluster, and how much they can store. With three nodes the cluster survives the loss of one.',
  'setup.networkHelp':
    'The address range that the cluster may assign. Without it, instances cannot reach the internet or be reached from it.',
  'setup.addressHelp':
    'The address of the portal, which e-mails contain, begins with https://. Its certificate can be requested automatically.',
  'setup.addressNone': 'The portal has no address yet.',
  'setup.brandHelp': 'What your customers see when they sign in.',
  'setup.pricesHelp':
    'The price book “default” contains example prices. Review each price, then save. For another currency, create another price book.',
  'setup.pricesExample': 'The price book “default” still contains the example prices.',
  'setup.imagesHelp': 'Instances boot from images. App images are downloaded from their publisher.',
  'setup.imagesApps': 'Apps: {apps}',
  'setup.import': 'Import',
  'setup.importOf': 'Import {name}',
  'setup.importing': 'Importing {name}',
  'setup.imageReady': 'Imported',
  'setup.imageMissing': 'Not imported',
  'setup.sizesHelp':
    'Flavors are the instance sizes that customers choose from. GPU pools are sets of GPUs that are shared in the same way.',
  'setup.sizesFlavors': 'Flavors',
  'setup.sizesPools': 'GPU pools',
  'setup.sizesGpus': 'GPUs detected: {n}.',
  'setup.sizesNoGpus': 'No GPUs detected. Instances run without a GPU. See “Nodes and GPUs” for details.',
  'setup.customerHelp': 'Creates an organization, a project in it, and an administrator who receives a password link.',
  'setup.customerMake': 'Create customer',
  'setup.customerProject': 'First project',
  'setup.customerEmail': 'Administrator’s e-mail address',
  'setup.machineHelp':
    'Create an instance with a virtual GPU, as your customers will. The step is completed once programs in it can use the GPU: run nvidia-smi in its shell.',
} as const;
