// Queries for how far a cluster is set up.
import { useBranding } from './branding';
import { useOrganizations, usePriceBooks } from './customers';
import { useFlavors, useImages, usePools, useUsers } from './queries';
import type { Schemas } from './client';
import type { Session } from './session';

export interface There {
  totp: boolean;
  branding: Schemas['Branding'];
  books: Schemas['PriceBook'][];
  images: Schemas['Image'][];
  flavors: Schemas['Flavor'][];
  pools: Schemas['GPUPool'][];
  organizations: Schemas['Organization'][];
}

/** useThere returns undefined until everything is read. */
export function useThere(session: Session): { there?: There; error: unknown } {
  const [users, branding, books, images, flavors, pools, organizations] = [
    useUsers({ search: session.name }),
    useBranding(),
    usePriceBooks(),
    useImages(''),
    useFlavors(),
    usePools(),
    useOrganizations({ limit: 1 }),
  ];
  const error = [users, branding, books, images, flavors, pools, organizations].find((q) => q.error)?.error ?? null;
  if (
    !users.data ||
    !branding.data ||
    !books.data ||
    !images.data ||
    !flavors.data ||
    !pools.data ||
    !organizations.data
  )
    return { error };
  return {
    error,
    there: {
      totp: Boolean(users.data.items.find((u) => u.meta.name === session.name)?.status?.totp),
      branding: branding.data,
      books: books.data.items,
      images: images.data.items,
      flavors: flavors.data.items,
      pools: pools.data.items,
      organizations: organizations.data.items,
    },
  };
}
