// Converts between the passkey messages of the API, JSON, and of browsers, typed arrays (Web Authentication Level
// 3, section 5.1.8). Not all browsers that support passkeys have parseCreationOptionsFromJSON.
type Json = Record<string, unknown>;

const bytes = (text: unknown) => {
  const plain = atob(String(text).replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (c) => c.charCodeAt(0));
};

const text = (data: ArrayBuffer | null) =>
  data === null
    ? undefined
    : btoa(String.fromCharCode(...new Uint8Array(data)))
        .replaceAll('+', '-')
        .replaceAll('/', '_')
        .replaceAll('=', '');

const descriptors = (list: unknown) => ((list as Json[] | undefined) ?? []).map((d) => ({ ...d, id: bytes(d['id']) }));

/** passkeysWork reports whether this browser can use passkeys on this page. */
export const passkeysWork = () => typeof PublicKeyCredential !== 'undefined' && window.isSecureContext;

/** makePasskey creates a passkey on an authenticator. */
export async function makePasskey(options: Json): Promise<Json> {
  const user = options['user'] as Json;
  const publicKey = {
    ...options,
    challenge: bytes(options['challenge']),
    user: { ...user, id: bytes(user['id']) },
    excludeCredentials: descriptors(options['excludeCredentials']),
  } as unknown as PublicKeyCredentialCreationOptions;
  const made = (await navigator.credentials.create({ publicKey })) as PublicKeyCredential;
  const response = made.response as AuthenticatorAttestationResponse;
  return {
    ...named(made),
    response: {
      clientDataJSON: text(response.clientDataJSON),
      attestationObject: text(response.attestationObject),
      transports: response.getTransports(),
    },
  };
}

/** askPasskey signs in with an authenticator. */
export async function askPasskey(options: Json): Promise<Json> {
  const publicKey = {
    ...options,
    challenge: bytes(options['challenge']),
    allowCredentials: descriptors(options['allowCredentials']),
  } as unknown as PublicKeyCredentialRequestOptions;
  const used = (await navigator.credentials.get({ publicKey })) as PublicKeyCredential;
  const response = used.response as AuthenticatorAssertionResponse;
  return {
    ...named(used),
    response: {
      clientDataJSON: text(response.clientDataJSON),
      authenticatorData: text(response.authenticatorData),
      signature: text(response.signature),
      userHandle: text(response.userHandle),
    },
  };
}

const named = (c: PublicKeyCredential) => ({
  id: c.id,
  rawId: text(c.rawId),
  type: c.type,
  authenticatorAttachment: c.authenticatorAttachment ?? undefined,
  clientExtensionResults: {},
});

/** cancelled reports whether the user has cancelled in the browser, or did not respond. */
export const cancelled = (e: unknown) =>
  e instanceof DOMException && (e.name === 'NotAllowedError' || e.name === 'AbortError');
