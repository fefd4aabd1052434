export const virtualMachines = {
  'mach.policy': 'CPUs',
  'mach.policy.shared': 'Shared',
  'mach.policy.dedicated': 'Dedicated CPUs',
  'mach.policyHelp':
    'Dedicated: each vCPU has a whole CPU of the node to itself, so a node needs as many that are free. Shared: instances share the other CPUs.',
  'mach.policyFlavor': 'The flavor has shared CPUs. Other flavors may have dedicated ones.',
  'mach.cpu': 'Processor',
  'mach.cpu.baseline': 'What all nodes support',
  'mach.cpu.host': 'The node’s processor',
  'mach.cpuHelp': 'With the node’s own processor, it can only be live-migrated to nodes with the same one.',
  'mach.cpu.emulated': 'Emulated',
  'mach.nextStart': 'A change takes effect when the instance is next stopped and started.',
  'mach.pending': '{now}; from the next start: {next}',
  'mach.pages': 'Huge pages',
  'mach.asFlavor': 'As in the flavor',
  'mach.pagesHelp':
    'Back the memory with large pages, which reduces TLB misses. Only on nodes where enough are reserved, and not with a virtual GPU.',
  'mach.os': 'Operating system',
  'mach.osHelp':
    'Windows: Hyper-V enlightenments and local time; the image needs the virtio drivers. Not with a virtual GPU. Fixed at creation.',
  'mach.firmware': 'Firmware',
  'mach.fixed': 'Fixed at creation.',
  'mach.secureBootHelp': 'The firmware starts only signed code.',
  'mach.tpmHelp': 'Its state is stored encrypted, beside the root disk in a shared pool.',
  'flv.policy.optional': 'Instances choose',
  'flv.ordinary': 'Ordinary pages',
} as const;
