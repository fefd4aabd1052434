// Queries for how far a cluster is set up.
import { useBranding } from './branding';
import type { Schemas } from './client';
import { useExternalNetworks } from './cluster';
import { useOrganizations, usePriceBooks } from './customers';
import { useMailSettings } from './mail';
import { useFlavors, useGpus, useImages, useInstances, useNodes, usePools, useUsers } from './queries';
import type { Session } from './session';

export interface There {
  totp: boolean;
  nodes: Schemas['Node'][];
  gpus: number;
  external: Schemas['ExternalNetwork'][];
  /** The URL of the portal; empty if it is not set. */
  address: string;
  branding: Schemas['Branding'];
  books: Schemas['PriceBook'][];
  images: Schemas['Image'][];
  flavors: Schemas['Flavor'][];
  pools: Schemas['GPUPool'][];
  organizations: Schemas['Organization'][];
  instances: Schemas['Instance'][];
}

/** useThere returns undefined until everything is read. */
export function useThere(session: Session): { there?: There; error: unknown } {
  const users = useUsers({ search: session.name });
  const [nodes, gpus] = [useNodes({ limit: 1000 }), useGpus()];
  const [external, mail] = [useExternalNetworks(), useMailSettings(false)];
  const [branding, books, images] = [useBranding(), usePriceBooks(), useImages('')];
  const [flavors, pools] = [useFlavors(), usePools()];
  const [organizations, instances] = [useOrganizations({ limit: 1 }), useInstances({ limit: 100 })];
  const all = [users, nodes, gpus, external, mail, branding, books, images, flavors, pools, organizations, instances];
  const error = all.find((q) => q.error)?.error ?? null;
  if (
    !users.data ||
    !nodes.data ||
    !gpus.data ||
    !external.data ||
    !mail.data ||
    !branding.data ||
    !books.data ||
    !images.data ||
    !flavors.data ||
    !pools.data ||
    !organizations.data ||
    !instances.data
  )
    return { error };
  return {
    error,
    there: {
      totp: Boolean(users.data.items.find((u) => u.meta.name === session.name)?.status?.totp),
      nodes: nodes.data.items,
      gpus: gpus.data.items.length,
      external: external.data.items,
      address: mail.data.portalURL ?? '',
      branding: branding.data,
      books: books.data.items,
      images: images.data.items,
      flavors: flavors.data.items,
      pools: pools.data.items,
      organizations: organizations.data.items,
      instances: instances.data.items,
    },
  };
}
