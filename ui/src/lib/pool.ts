// What a GPU pool has, has allocated, and has left.
import type { Schemas } from '../api/client';
import { promised, tenantsOf, type Gpu } from './node';

type Instance = Schemas['Instance'];
type Pool = Schemas['GPUPool'];

/** The pool of GPUs and instances without one; it may not exist as an object. */
export const defaultPool = 'default';

export interface CardFigures {
  gpu: Gpu;
  vgpus: number;
  vramBytes: number;
  /** What may be allocated: more than it has, if node memory backs the rest. */
  mayPromiseBytes: number;
  promisedBytes: number;
  residentBytes: number;
  swappedBytes: number;
  sharePercent: number;
}

export interface PoolFigures {
  name: string;
  pool?: Pool;
  cards: CardFigures[];
  /** Of allocated VRAM; 100 means no overcommitment. */
  overcommitPercent: number;
  vramBytes: number;
  mayPromiseBytes: number;
  promisedBytes: number;
  residentBytes: number;
  swappedBytes: number;
  sharePercent: number;
  vgpus: number;
  /** The GPU with room for the biggest virtual GPU; none if nothing is accepted. */
  roomiest?: { gpu: Gpu; vramBytes: number; sharePercent: number };
}

function figures(gpu: Gpu, instances: Instance[], overcommitPercent: number): CardFigures {
  const { vramBytes = 0, vramUsedBytes = 0, vramSwappedBytes = 0 } = gpu.status ?? {};
  const tenants = tenantsOf(gpu, instances);
  const sum = promised(tenants);
  return {
    gpu,
    vgpus: tenants.length,
    vramBytes,
    mayPromiseBytes: Math.floor((vramBytes * overcommitPercent) / 100),
    residentBytes: vramUsedBytes - vramSwappedBytes,
    swappedBytes: vramSwappedBytes,
    promisedBytes: sum.vramBytes,
    sharePercent: sum.sharePercent,
  };
}

/** pools returns all pools by name, the default one first. */
export function pools(objects: Pool[], gpus: Gpu[], instances: Instance[]): PoolFigures[] {
  const of = (g: Gpu) => g.spec.pool || defaultPool;
  const names = [...new Set([defaultPool, ...objects.map((p) => p.meta.name), ...gpus.map(of)])];
  names.sort((a, b) => Number(b === defaultPool) - Number(a === defaultPool) || a.localeCompare(b));
  return names.map((name) => {
    const pool = objects.find((p) => p.meta.name === name);
    const overcommitPercent = Math.max(100, pool?.spec.vramOvercommitPercent ?? 0);
    const cards = gpus.filter((g) => of(g) === name).map((g) => figures(g, instances, overcommitPercent));
    const sum = (f: (c: CardFigures) => number) => cards.reduce((n, c) => n + f(c), 0);
    const limit = pool?.spec.maxVgpusPerGpu || Infinity;
    const room = cards
      .filter((c) => !c.gpu.spec.unschedulable && c.vgpus < limit && c.promisedBytes < c.mayPromiseBytes)
      .map((c) => ({
        gpu: c.gpu,
        vramBytes: Math.min(c.vramBytes, c.mayPromiseBytes - c.promisedBytes),
        sharePercent: Math.max(0, 100 - c.sharePercent),
      }))
      .sort((a, b) => b.vramBytes - a.vramBytes)[0];
    return {
      name,
      pool,
      cards,
      overcommitPercent,
      vramBytes: sum((c) => c.vramBytes),
      mayPromiseBytes: sum((c) => c.mayPromiseBytes),
      promisedBytes: sum((c) => c.promisedBytes),
      residentBytes: sum((c) => c.residentBytes),
      swappedBytes: sum((c) => c.swappedBytes),
      sharePercent: sum((c) => c.sharePercent),
      vgpus: sum((c) => c.vgpus),
      roomiest: room,
    };
  });
}
