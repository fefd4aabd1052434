// Support grants: the consents of organizations that support may enter their instances.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type SupportGrant = Schemas['SupportGrant'];

/** grantValid reports whether a support grant is valid at a time. */
export const grantValid = (g: SupportGrant, now: Date = new Date()) =>
  !g.meta.deletedAt && now < new Date(g.spec.expiresAt);

export const useCreateSupportGrant = (onMade: () => void) => {
  const client = useQueryClient();
  return useMutation({
    // The grant lasts from when it is created, not from when its form was opened.
    mutationFn: (from: (now: number) => SupportGrant) => ok(api.POST('/v1/support-grants', { body: from(Date.now()) })),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['SupportGrant', 'list'] });
      onMade();
    },
  });
};

export const revokeSupportGrant = (g: SupportGrant) =>
  ok(api.DELETE('/v1/support-grants/{id}', { params: { path: { id: g.meta.id ?? '' } } }));
