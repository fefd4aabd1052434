// Fake responses of the API for component tests.
import type { CauseText } from './cause-text';
import { vi } from 'vitest';

export interface Asked {
  method: string;
  path: string;
  body: unknown;
  /** It was a dry run. */
  dry?: boolean;
}

/** answering responds to a GET of each path with its object, to any other GET with an empty list, and returns the
 * other requests. */
export function answering(objects: Record<string, object>): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    const url = new URL(r.url);
    const path = url.pathname.replace('/portal/v1/', '');
    const dry = url.searchParams.has('dryRun') && { dry: true };
    if (r.method !== 'GET') asked.push({ method: r.method, path, body: await r.json().catch(() => undefined), ...dry });
    return Response.json(objects[path] ?? { items: [] });
  });
  return asked;
}

/** said makes a text that has a cause beside it. */
export const said = (text: string) => text as unknown as CauseText;
