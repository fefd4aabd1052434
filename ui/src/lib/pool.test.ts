import { expect, test } from 'vitest';
import type { Schemas } from '../api/client';
import { pools } from './pool';

type Instance = Schemas['Instance'];
const gib = 2 ** 30;
const card = (id: string, spec: Schemas['GPUSpec'] = {}): Schemas['GPU'] => ({
  kind: 'GPU',
  meta: { id, name: id },
  spec,
  status: { vramBytes: 8 * gib, vramUsedBytes: gib },
});
const on = (gpu: string, vram: number, share: number): Instance => ({
  kind: 'Instance',
  meta: { name: 'i' },
  spec: { flavor: 'f' },
  assignment: { gpu, vgpuVramBytes: vram * gib, vgpuSharePercent: share },
});
const pool = (name: string, most = 0): Schemas['GPUPool'] => ({
  kind: 'GPUPool',
  meta: { name },
  spec: { maxVgpusPerGpu: most },
});

test('sums over the cards of a pool, the default one first and always there', () => {
  const all = pools(
    [pool('a')],
    [card('g1'), card('g2'), card('g3', { pool: 'a' })],
    [on('g1', 6, 50), on('g1', 1, 10), on('g3', 8, 100)],
  );
  expect(all.map((p) => p.name)).toEqual(['default', 'a']);
  expect(all[0]).toMatchObject({
    vramBytes: 16 * gib,
    promisedBytes: 7 * gib,
    residentBytes: 2 * gib,
    sharePercent: 60,
    vgpus: 2,
  });
  expect(all[0]?.roomiest).toMatchObject({ gpu: { meta: { id: 'g2' } }, vramBytes: 8 * gib, sharePercent: 100 });
  expect(all[1]?.roomiest).toBeUndefined();
});

test('no room on cards that take nothing, or have as many as the pool allows', () => {
  expect(pools([], [card('g1', { unschedulable: true })], [])[0]?.roomiest).toBeUndefined();
  expect(pools([pool('default', 1)], [card('g1')], [on('g1', 1, 1)])[0]?.roomiest).toBeUndefined();
  expect(pools([], [], [])[0]).toMatchObject({ name: 'default', cards: [], vramBytes: 0 });
});
