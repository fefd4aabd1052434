// What component tests answer in the API's place.
import { vi } from 'vitest';

export interface Asked {
  method: string;
  path: string;
  body: unknown;
}

/** answering has each GET of a path answered with its object, another with an empty list, and returns what else is asked. */
export function answering(objects: Record<string, object>): Asked[] {
  const asked: Asked[] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    const path = new URL(r.url).pathname.replace('/portal/v1/', '');
    if (r.method !== 'GET') asked.push({ method: r.method, path, body: await r.json().catch(() => undefined) });
    return Response.json(objects[path] ?? { items: [] });
  });
  return asked;
}
