// The API for the portal's pages: same origin, below /portal, where the session's cookie replaces its token
// (docs/decisions/0018).
import createClient from 'openapi-fetch';
import { withoutCommands } from './hint';
import { keepQuantities } from './quantities';
import type { components, paths } from './schema';

export type Schemas = components['schemas'];
export type Instance = Schemas['Instance'];
export type Problem = Schemas['Problem'];
export type FieldProblem = Schemas['FieldProblem'];

export const base = '/portal';

// Looked up at each call, so that tests can replace it.
export const api = createClient<paths>({
  baseUrl: (globalThis.location?.origin ?? '') + base,
  credentials: 'same-origin',
  fetch: async (r) => keepQuantities(r, await globalThis.fetch(r)),
});

/** ApiError is an error of the API: a stable code, a message, a hint without commands, and the invalid fields. */
export class ApiError extends Error {
  readonly code: Problem['code'] | 'unreachable';
  readonly hint?: string;
  readonly fields: readonly FieldProblem[];
  /** Why it is refused, in a form for any language. */
  readonly reason?: Schemas['Cause'];
  constructor(body: {
    code: ApiError['code'];
    detail: string;
    hint?: string;
    errors?: FieldProblem[];
    cause?: Schemas['Cause'];
  }) {
    super(body.detail);
    this.name = 'ApiError';
    this.code = body.code;
    this.hint = withoutCommands(body.hint);
    this.fields = (body.errors ?? []).map((f) => ({ ...f, hint: withoutCommands(f.hint) }));
    this.reason = body.cause;
  }

  /** The first invalid field. */
  get field(): string | undefined {
    return this.fields[0]?.field;
  }
}

/** refused turns a response that is not a success into an error, whoever sent it. */
export const refused = (status: number, body?: Partial<Problem>): ApiError =>
  new ApiError({
    code: body?.code ?? 'internal',
    detail: body?.detail ?? `HTTP ${status}`,
    hint: body?.hint,
    errors: body?.errors,
    cause: body?.cause,
  });

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** ok returns a response's data, or throws an ApiError. */
export async function ok<T>(answer: Promise<Answer<T>>): Promise<T> {
  let got: Answer<T>;
  try {
    got = await answer;
  } catch (e) {
    if (e instanceof DOMException && e.name === 'AbortError') throw e;
    throw new ApiError({ code: 'unreachable', detail: '' });
  }
  if (got.response.ok) return got.data as T;
  throw refused(got.response.status, got.error as Partial<Problem> | undefined);
}

export const asApiError = (e: unknown): ApiError =>
  e instanceof ApiError ? e : new ApiError({ code: 'internal', detail: e instanceof Error ? e.message : String(e) });
