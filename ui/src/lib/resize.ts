// The size of an instance: what it requests of its node.
import type { Instance, Schemas } from '../api/client';

type Spec = Instance['spec'];

const sizeOf = ({ flavor, vgpu: v, hugePages, cpuPolicy }: Spec) =>
  JSON.stringify([
    flavor,
    v && [v.pool || 'default', v.model ?? '', v.vramBytes, v.sharePercent ?? 0, v.tier ?? 'standard'],
    hugePages ?? '',
    cpuPolicy ?? '',
  ]);

/** sameSize reports whether two specs request the same of a node. */
export const sameSize = (a: Spec, b: Spec) => sizeOf(a) === sizeOf(b);

/** cancelled returns the instance with the size that it has; undefined if that is not known, or what it requests. */
export function cancelled(i: Instance): Instance | undefined {
  const has = i.assignment?.size;
  if (!has) return undefined;
  const spec = { ...i.spec, flavor: has.flavor, vgpu: has.vgpu, hugePages: has.hugePages, cpuPolicy: has.cpuPolicy };
  return sameSize(i.spec, spec) ? undefined : { ...i, spec };
}

/** sliceOf returns the query for offers of a virtual GPU. */
export const sliceOf = (v: Schemas['VGPUSpec'] | undefined) =>
  v
    ? {
        vramBytes: v.vramBytes,
        sharePercent: v.sharePercent ?? 0,
        tier: v.tier ?? ('standard' as const),
        pool: v.pool || 'default',
        ...(v.model && { model: v.model }),
      }
    : {};
