// The source of an instance: an app or an image, as one choice.
import type { Schemas } from '../api/client';
import { gib, type Draft } from './draft';

type App = Schemas['App'];
type Image = Schemas['Image'];

/** sourceOf returns the value of the form's field for a draft. */
export const sourceOf = (d: Draft): string => (d.app ? `app:${d.app}` : d.image ? `image:${d.image}` : '');

/** imageOf returns the public image of an app, if it exists. */
export const imageOf = (app: App, images: Image[]): Image | undefined =>
  images.find((i) => i.spec.public && i.meta.name === app.spec.image);

/** abilityOf returns whether the image of an app, or an image, can use a virtual GPU, if that is known. */
export const abilityOf = (app: App | undefined, image: Image | undefined): 'new-kernel' | 'unsupported' | undefined => {
  const can = image?.spec.abilities?.vgpu ?? app?.spec.abilities?.vgpu;
  return can === 'new-kernel' || can === 'unsupported' ? can : undefined;
};

/** choose sets a draft's source; an app that needs VRAM gets a virtual GPU with as much. */
export function choose(d: Draft, source: string, apps: App[]): Draft {
  const [kind, name = ''] = source.split(/:(.*)/s);
  if (kind !== 'app') return { ...d, app: '', image: name };
  const vram = (apps.find((a) => a.meta.name === name)?.spec.needs?.vramBytes ?? 0) / gib;
  return {
    ...d,
    app: name,
    image: '',
    ...(vram > 0 && { vgpu: true, vramGib: String(Math.max(vram, Number(d.vramGib) || 0)) }),
  };
}
