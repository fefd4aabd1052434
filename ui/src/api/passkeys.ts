// The user's own passkeys, and sign-in with them.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type Passkey = Schemas['Passkey'];

/** A function of the browser that processes options of the server. */
type Browser = (options: Schemas['PasskeyChallenge']['options']) => Promise<Schemas['PasskeyAnswer']['credential']>;

export const passkeysKey = ['own-passkeys'];

export const usePasskeys = () =>
  useQuery({ queryKey: passkeysKey, queryFn: ({ signal }) => ok(api.GET('/v1/passkeys', { signal })) });

/** addPasskey creates a passkey on an authenticator that the browser selects. */
export async function addPasskey(make: Browser, name: string, password: string): Promise<Schemas['PasskeyAdded']> {
  const { flow, options } = await ok(api.POST('/v1/passkeys', { body: { name, password } }));
  const credential = await make(options);
  return ok(api.POST('/v1/passkeys/confirm', { body: { flow, credential } }));
}

export const removePasskey = (id: string, password: string) =>
  ok(api.POST('/v1/passkeys/{id}/delete', { params: { path: { id } }, body: { password } }));

/** passkeyAnswer returns an authenticator's response to a new challenge. */
export async function passkeyAnswer(ask: Browser): Promise<Schemas['PasskeyAnswer']> {
  const { flow, options } = await ok(api.POST('/v1/login/passkey'));
  return { flow, credential: await ask(options) };
}
