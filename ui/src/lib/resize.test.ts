import { expect, test } from 'vitest';
import type { Instance } from '../api/client';
import { cancelled, sameSize } from './resize';

const spec: Instance['spec'] = { flavor: 'f', image: 'i', vgpu: { pool: 'default', vramBytes: 1, sharePercent: 0 } };

test('defaults are the same size', () => {
  expect(sameSize(spec, { ...spec, priority: 3, vgpu: { vramBytes: 1, tier: 'standard' } })).toBe(true);
  for (const other of [
    { ...spec, flavor: 'g' },
    { ...spec, vgpu: undefined },
    { ...spec, vgpu: { vramBytes: 2 } },
    { ...spec, vgpu: { vramBytes: 1, model: 'L4' } },
    { ...spec, hugePages: '2Mi' as const },
  ])
    expect(sameSize(spec, other)).toBe(false);
});

test('a resize is cancelled by the size that the instance has', () => {
  const i: Instance = { kind: 'Instance', meta: { name: 'a' }, spec };
  expect(cancelled(i)).toBeUndefined();
  expect(cancelled({ ...i, assignment: { size: { flavor: 'f', vgpu: { vramBytes: 1 } } } })).toBeUndefined();
  const back = cancelled({ ...i, assignment: { size: { flavor: 'e' } } });
  expect(back?.spec).toMatchObject({ flavor: 'e', image: 'i', vgpu: undefined });
});
