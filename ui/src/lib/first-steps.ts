// A tenant's first steps that are done: derived from the existing objects, stored nowhere.
import type { Instance } from '../api/client';

export type FirstStep = 'key' | 'instance' | 'gpu';

/** readyWithGpu returns an instance in which programs can use the virtual GPU. */
export const readyWithGpu = (instances: readonly Instance[]): Instance | undefined =>
  instances.find((i) => i.status?.conditions?.some((c) => c.type === 'GPUReady' && c.status));

export const firstSteps = (keys: number, instances: readonly Instance[]): { step: FirstStep; done: boolean }[] => [
  { step: 'key', done: keys > 0 || instances.length > 0 },
  { step: 'instance', done: instances.length > 0 },
  { step: 'gpu', done: readyWithGpu(instances) !== undefined },
];
