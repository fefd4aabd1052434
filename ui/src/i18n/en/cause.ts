// Why objects are not as they were requested; the keys are codes of the API.
export const cause = {
  'cause.no-room': 'There is no room for this size now.',
  'cause.no-room.gpu': 'No {model} with {bytes} of free VRAM is available now.',
  'cause.no-room.gpuShare': 'No {model} with {bytes} of free VRAM and {share} of its time is available now.',
  'cause.anyGpu': 'GPU',
  'cause.no-room.cpus': '{n} vCPUs are not free in one place now.',
  'cause.no-room.memory': '{bytes} of memory are not free in one place now.',
  'cause.no-room.storage': '{bytes} of storage are not free in one place now.',
  'cause.room-reserved': 'The free capacity is reserved for instances that have waited longer.',
  'cause.no-storage': 'No storage has room for a volume of {bytes} now.',
  'cause.node-unavailable': 'What it needs is not available now. It continues by itself when it is.',
  'cause.data-lost': 'Its data is lost, because the machine that stored it was removed. Delete it.',
  'cause.data-elsewhere': 'There is capacity, but not where its data is stored.',
  'cause.moving': 'It was being moved when something failed. It continues by itself when it is known where it is.',
  'cause.not-placed': 'It waits until the object that it belongs to has a place.',
} as const;
