// The form that creates a volume, and the state of a volume.
import type { Schemas } from '../api/client';
import { sharedPools } from './disk-pool';
import { bytesOf, type Size } from './size';
import { stateOf, type State } from './state';

type Volume = Schemas['Volume'];

export interface VolumeDraft {
  name: string;
  size: Size;
  /** Empty means blank; else image:ID or snapshot:ID. */
  source: string;
  instance: string;
  pool: string;
  encrypted: boolean;
  readIOPS: string;
  writeIOPS: string;
  readRate: Size;
  writeRate: Size;
}

export const newVolume = (source = '', instance = ''): VolumeDraft => ({
  name: '',
  size: { number: source ? '' : '10', unit: 'GiB' },
  source,
  instance,
  pool: '',
  encrypted: false,
  readIOPS: '',
  writeIOPS: '',
  readRate: { number: '', unit: 'MiB' },
  writeRate: { number: '', unit: 'MiB' },
});

type Limits = Pick<VolumeDraft, 'readIOPS' | 'writeIOPS' | 'readRate' | 'writeRate'>;

/** limitsOf returns the limits of a draft, or nothing when none is set. */
export function limitsOf(d: Limits): Schemas['VolumeQoS'] | undefined {
  const n = (s: string) => Math.max(0, Math.round(Number(s) || 0));
  const all = {
    readIOPS: n(d.readIOPS),
    writeIOPS: n(d.writeIOPS),
    readBytesPerSecond: bytesOf(d.readRate),
    writeBytesPerSecond: bytesOf(d.writeRate),
  };
  const set = Object.fromEntries(Object.entries(all).filter(([, v]) => v > 0));
  return Object.keys(set).length > 0 ? set : undefined;
}

/** volumeOf returns the volume to send for a draft. */
export function volumeOf(d: VolumeDraft, project: string): Volume {
  const [kind, id] = d.source.split(':');
  const sizeBytes = bytesOf(d.size);
  const qos = limitsOf(d);
  return {
    kind: 'Volume',
    meta: { name: d.name.trim(), project },
    spec: {
      ...(sizeBytes > 0 && { sizeBytes }),
      ...(kind === 'image' && { image: id }),
      ...(kind === 'snapshot' && { snapshot: id }),
      ...(d.instance && { instance: d.instance }),
      ...(d.pool && kind !== 'snapshot' && { pool: d.pool }),
      ...(d.encrypted && { encrypted: true }),
      ...(qos && { qos }),
    },
  };
}

/** volumeState returns a volume's state; a rollback that is requested and not done is a state of its own. */
export const volumeState = (v: Volume): State =>
  stateOf(v) === 'Ready' && (v.spec.rollback?.count ?? 0) > (v.status?.rollbacks ?? 0) ? 'RollingBack' : stateOf(v);

/** placeOf returns the instance of a volume, and whether the volume is being attached to or detached from it. */
export function placeOf({ spec, status }: Volume): { instance: string; doing: '' | 'detaching' } {
  const open = status?.attached ?? '';
  if (spec.instance) return { instance: spec.instance, doing: '' };
  return { instance: open, doing: open ? 'detaching' : '' };
}

/** migratable tells whether a volume can be copied to another node: it is stored on one, and no instance has it. */
export const migratable = (v: Volume) =>
  !v.spec.root &&
  !placeOf(v).instance &&
  !v.meta.deletedAt &&
  !!v.assignment?.node &&
  !sharedPools.includes(v.assignment.pool ?? '');
