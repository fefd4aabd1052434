// The own passkeys, and what signs in with one.
import { useQuery } from '@tanstack/react-query';
import { api, ok, type Schemas } from './client';

export type Passkey = Schemas['Passkey'];

/** What the browser does with options of the server. */
type Browser = (options: Schemas['PasskeyChallenge']['options']) => Promise<Schemas['PasskeyAnswer']['credential']>;

export const passkeysKey = ['own-passkeys'];

export const usePasskeys = () =>
  useQuery({ queryKey: passkeysKey, queryFn: ({ signal }) => ok(api.GET('/v1/passkeys', { signal })) });

/** addPasskey makes one on an authenticator that the browser asks for. */
export async function addPasskey(make: Browser, name: string, password: string): Promise<Schemas['PasskeyAdded']> {
  const { flow, options } = await ok(api.POST('/v1/passkeys', { body: { name, password } }));
  const credential = await make(options);
  return ok(api.POST('/v1/passkeys/confirm', { body: { flow, credential } }));
}

export const removePasskey = (id: string, password: string) =>
  ok(api.POST('/v1/passkeys/{id}/delete', { params: { path: { id } }, body: { password } }));

/** passkeyAnswer is an authenticator's answer to a new challenge. */
export async function passkeyAnswer(ask: Browser): Promise<Schemas['PasskeyAnswer']> {
  const { flow, options } = await ok(api.POST('/v1/login/passkey'));
  return { flow, credential: await ask(options) };
}
