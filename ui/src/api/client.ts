// The API as the portal's pages see it: same origin, below /portal, where the
// session's cookie stands for its token (docs/decisions/0018).
import createClient from 'openapi-fetch';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export type Instance = Schemas['Instance'];
export type ErrorBody = Schemas['Error'];

export const base = '/portal';

// Looked up at each call, so that tests can replace it.
export const api = createClient<paths>({ baseUrl: (globalThis.location?.origin ?? '') + base, credentials: 'same-origin', fetch: (r) => globalThis.fetch(r) });

/** ApiError is what the API said: a stable code, words, what to do, and the field at fault. */
export class ApiError extends Error {
  readonly code: ErrorBody['code'] | 'unreachable';
  readonly hint?: string;
  readonly field?: string;
  constructor(body: { code: ApiError['code']; message: string; hint?: string; field?: string }) {
    super(body.message);
    this.name = 'ApiError';
    this.code = body.code;
    this.hint = body.hint;
    this.field = body.field;
  }
}

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** ok is an answer's data, or throws an ApiError. */
export async function ok<T>(answer: Promise<Answer<T>>): Promise<T> {
  let got: Answer<T>;
  try {
    got = await answer;
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new ApiError({ code: 'unreachable', message: '' });
  }
  if (got.response.ok) return got.data as T;
  const body = got.error as Partial<ErrorBody> | undefined;
  throw new ApiError({
    code: body?.code ?? 'internal',
    message: body?.message ?? `HTTP ${got.response.status}`,
    hint: body?.hint,
    field: body?.field,
  });
}

export const asApiError = (e: unknown): ApiError =>
  e instanceof ApiError ? e : new ApiError({ code: 'internal', message: e instanceof Error ? e.message : String(e) });
