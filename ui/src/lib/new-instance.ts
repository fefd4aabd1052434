// What the form that creates an instance begins with: what a link to it chooses, an image, and a name.
import type { Schemas } from '../api/client';
import type { Draft } from './draft';
import type { GpuKind } from './offer';
import { isMedium } from './source';

type Image = Schemas['Image'];

const form = '/instances/new';
const withApp = 'app:';
const withGpu = 'gpu:';

/** newWithApp returns the address of the form with an app. */
export const newWithApp = (name: string): string => `${form}/${encodeURIComponent(withApp + name)}`;

/** newWithGpu returns the address of the form with a kind of GPU. */
export const newWithGpu = ({ pool, model }: Pick<GpuKind, 'pool' | 'model'>): string =>
  `${form}/${encodeURIComponent(`${withGpu}${pool}:${model}`)}`;

/** asked returns what the last part of such an address chooses; a part that it does not know chooses nothing. */
export function asked(part: string): { app?: string; gpu?: { pool: string; model: string } } {
  const text = decodeURIComponent(part);
  if (text.startsWith(withApp)) return { app: text.slice(withApp.length) };
  const [, pool, model] = /^gpu:([^:]*):(.+)$/.exec(text) ?? [];
  return pool !== undefined && model !== undefined ? { gpu: { pool, model } } : {};
}

/** usualImage returns the newest public image that is not known to be unable to use a virtual GPU. */
export const usualImage = (images: Image[]): Image | undefined =>
  images
    .filter(
      (i) => i.spec.public && !isMedium(i) && i.spec.abilities?.vgpu !== 'unsupported' && i.status?.phase !== 'Failed',
    )
    .toSorted((a, b) => (b.meta.createdAt ?? '').localeCompare(a.meta.createdAt ?? ''))[0];

/** suggestedName returns a name after what an instance is made from; the suffix makes it different from others. */
function suggestedName(d: Draft, suffix: string): string {
  const source = (d.app || d.image || d.medium)
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 50)
    .replace(/-+$/, '');
  return `${source || 'instance'}-${suffix}`;
}

/** renamed returns the draft after a change with a name that suits it, unless the user has typed one. */
export function renamed(before: Draft, after: Draft, suffix: string): Draft {
  const typed = before.name !== '' && before.name !== suggestedName(before, suffix);
  return typed ? after : { ...after, name: suggestedName(after, suffix) };
}
