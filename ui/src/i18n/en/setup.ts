// The names of the wizard's steps, which the dashboard lists; wizard.ts has its other words.
export const setup = {
  'setup.title': 'Set up the cluster',
  'setup.card': 'Set up the cluster',
  'setup.cardHelp': '{done} of {all} steps completed. Remaining:',
  'setup.dismiss': 'Don’t show again',
  'setup.you': 'Your account',
  'setup.nodes': 'Nodes and storage',
  'setup.network': 'External network',
  'setup.address': 'Address and TLS',
  'setup.brand': 'Branding',
  'setup.prices': 'Prices',
  'setup.images': 'Images and apps',
  'setup.sizes': 'Flavors and GPUs',
  'setup.customer': 'First customer',
  'setup.machine': 'First GPU instance',
} as const;
