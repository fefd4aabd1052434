// The mail server that the cluster sends through, and its outbox: for operators.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type MailSettings = Schemas['MailSettings'];
export type MailMessage = Schemas['MailMessage'];
export type MailSuppression = Schemas['MailSuppression'];

/** useMailSettings reads again after some milliseconds, as the settings contain what was sent; false: never. */
export const useMailSettings = (every: number | false = 10_000) =>
  useQuery({
    queryKey: ['mail'],
    queryFn: ({ signal }) => ok(api.GET('/v1/mail', { signal })),
    refetchInterval: every,
  });

function useOutboxChange<V, R>(send: (v: V) => Promise<R>) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: () => void client.invalidateQueries({ queryKey: ['MailMessage', 'list'] }),
  });
}

/** useTestMail sends a message to the address; empty: to the caller. */
export const useTestMail = () =>
  useOutboxChange((to: string) => ok(api.POST('/v1/mail/test', { body: to ? { to } : {} })));

export const deleteMail = (m: MailMessage) =>
  ok(api.DELETE('/v1/mail-messages/{id}', { params: { path: { id: m.meta.id ?? '' } } }));

/** liftSuppression forgets that mail was returned from an address: mail is sent to it again. */
export const liftSuppression = (s: MailSuppression) =>
  ok(api.DELETE('/v1/mail-suppressions/{id}', { params: { path: { id: s.meta.id ?? '' } } }));

export const inviteUser = (user: string) => ok(api.POST('/v1/users/{id}/invite', { params: { path: { id: user } } }));

export const useInvite = () => useOutboxChange(inviteUser);
