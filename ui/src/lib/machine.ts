// The virtual machine of an instance, in a form: its processors, its memory and its firmware.
import type { Instance, Schemas } from '../api/client';

type Spec = Instance['spec'];
type FlavorSpec = Schemas['FlavorSpec'];

/** Machine is the form's part about the virtual machine; what is empty is as the API's default. */
export interface Machine {
  os: NonNullable<Spec['os']> | '';
  cpu: NonNullable<Spec['cpu']> | '';
  cpuPolicy: NonNullable<Spec['cpuPolicy']> | '';
  hugePages: NonNullable<Spec['hugePages']> | '';
  firmware: NonNullable<Spec['firmware']> | '';
  secureBoot: boolean;
  tpm: boolean;
}

export const usualMachine: Machine = {
  os: '',
  cpu: '',
  cpuPolicy: '',
  hugePages: '',
  firmware: '',
  secureBoot: false,
  tpm: false,
};

/** machineSpec returns the fields of an instance's spec for a machine. Huge pages cannot back the memory of an
 * instance with a virtual GPU, and only UEFI has Secure Boot and a TPM: what the form then does not show is omitted. */
export function machineSpec(m: Machine, vgpu: boolean): Partial<Spec> {
  const uefi = m.firmware === 'uefi';
  return {
    ...(m.os && { os: m.os }),
    ...(m.cpu && { cpu: m.cpu }),
    ...(m.cpuPolicy && { cpuPolicy: m.cpuPolicy }),
    ...(m.hugePages && !vgpu && { hugePages: m.hugePages }),
    ...(m.firmware && { firmware: m.firmware }),
    ...(uefi && m.secureBoot && { secureBoot: true }),
    ...(uefi && m.tpm && { tpm: true }),
  };
}

/** policyOf returns the CPU policy of an instance of a flavor: the flavor's, unless it is left to instances. */
export const policyOf = (own: Machine['cpuPolicy'], flavor: FlavorSpec | undefined): 'shared' | 'dedicated' =>
  flavor?.cpuPolicy === 'dedicated' || (flavor?.cpuPolicy === 'optional' && own === 'dedicated')
    ? 'dedicated'
    : 'shared';

/** Pending is a property of a run, and what it will be from the next start if that differs. */
export interface Pending<T> {
  now?: T;
  next?: T;
}

/** pendingPolicy compares an instance's CPU policy in its present run with the one that was requested since. */
export function pendingPolicy(i: Instance, flavor: FlavorSpec | undefined): Pending<'shared' | 'dedicated'> {
  if (!i.assignment?.node || !flavor) return {};
  const now = i.assignment.cells?.length ? 'dedicated' : 'shared';
  const next = policyOf(i.spec.cpuPolicy ?? '', flavor);
  return now === next ? { now } : { now, next };
}

/** pendingCPU compares the processor of an instance's present run with the one that was requested since. Without KVM
 * there is no choice, and a node that has no model of its processor cannot provide another. */
export function pendingCPU(i: Instance): Pending<'baseline' | 'host' | 'emulated'> {
  const has = i.status?.machine?.cpu;
  if (!has?.class) return {};
  const next = i.spec.cpu || 'baseline';
  return has.class === next || has.class === 'emulated' || !has.cpu?.model
    ? { now: has.class }
    : { now: has.class, next };
}

/** policyIn returns what is kept of an instance's CPU policy in another flavor, which may not leave it to instances. */
export const policyIn = (own: Machine['cpuPolicy'], flavor: FlavorSpec | undefined): Machine['cpuPolicy'] =>
  flavor?.cpuPolicy === 'optional' ? own : '';
