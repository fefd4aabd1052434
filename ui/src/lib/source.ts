// The source of an instance: an app, an image or an installation medium, as one choice.
import type { Schemas } from '../api/client';
import { gib, type Draft } from './draft';
import { policyIn } from './machine';

type App = Schemas['App'];
type Image = Schemas['Image'];
type Flavor = Schemas['Flavor'];

/** sourceOf returns the value of the form's field for a draft. */
export const sourceOf = (d: Draft): string =>
  d.app ? `app:${d.app}` : d.medium ? `medium:${d.medium}` : d.image ? `image:${d.image}` : '';

/** isMedium reports whether an image is an installation medium, which no disk can be created from. */
export const isMedium = (i: Image): boolean => i.spec.format === 'iso';

/** imageOf returns the public image of an app, if it exists. */
export const imageOf = (app: App, images: Image[]): Image | undefined =>
  images.find((i) => i.spec.public && i.meta.name === app.spec.image);

/** abilityOf returns whether the image of an app, or an image, can use a virtual GPU, if that is known. */
export const abilityOf = (app: App | undefined, image: Image | undefined): 'new-kernel' | 'unsupported' | undefined => {
  const can = image?.spec.abilities?.vgpu ?? app?.spec.abilities?.vgpu;
  return can === 'new-kernel' || can === 'unsupported' ? can : undefined;
};

/** systemOf returns the operating system of an app's image, or of an image, if that is known. */
export const systemOf = (app: App | undefined, image: Image | undefined) =>
  image?.spec.abilities?.os ?? app?.spec.abilities?.os;

/** smallest returns the smallest flavor whose root disk, if it has one, is large enough for an image. */
export function smallest(flavors: Flavor[], image?: Image): Flavor | undefined {
  const least = image?.status?.virtualBytes ?? 0;
  const fit = flavors.filter(({ spec: { rootBytes = 0 } }) => rootBytes === 0 || rootBytes >= least);
  return fit.toSorted((a, b) => a.spec.vcpus - b.spec.vcpus || a.spec.memoryBytes - b.spec.memoryBytes)[0];
}

/** fittingFlavor returns the smallest flavor that has what an app needs, if there is one. A root disk of the image's
 * size may be too small. */
export function fittingFlavor(app: App, flavors: Flavor[]): Flavor | undefined {
  const { vcpus = 0, memoryBytes = 0, rootBytes = 0 } = app.spec.needs ?? {};
  return smallest(
    flavors.filter(
      (f) => f.spec.vcpus >= vcpus && f.spec.memoryBytes >= memoryBytes && (f.spec.rootBytes ?? 0) >= rootBytes,
    ),
  );
}

/** choose sets a draft's source. An app gets a flavor that fits, and if it needs VRAM a virtual GPU with as much. */
export function choose(d: Draft, source: string, apps: App[], flavors: Flavor[] = []): Draft {
  const [kind, name = ''] = source.split(/:(.*)/s);
  if (kind === 'medium') return { ...d, app: '', image: '', medium: name };
  if (kind !== 'app') return { ...d, app: '', image: name, medium: '' };
  const app = apps.find((a) => a.meta.name === name);
  const vram = (app?.spec.needs?.vramBytes ?? 0) / gib;
  const flavor = app && fittingFlavor(app, flavors);
  return {
    ...d,
    app: name,
    image: '',
    medium: '',
    ...(flavor && {
      flavor: flavor.meta.name,
      machine: { ...d.machine, cpuPolicy: policyIn(d.machine.cpuPolicy, flavor.spec) },
    }),
    ...(vram > 0 && { vgpu: true, vramGib: String(Math.max(vram, Number(d.vramGib) || 0)) }),
  };
}
