// How a webhook is, in one word.
import type { Schemas } from '../api/client';

export type WebhookState = 'active' | 'paused' | 'retrying' | 'lossy';

/** stateOf a webhook; lossy: it works, and events were given up before. */
export function stateOf({ spec, status }: Pick<Schemas['Webhook'], 'spec' | 'status'>): WebhookState {
  if (spec.paused) return 'paused';
  if (status?.attempts) return 'retrying';
  return status?.givenUp ? 'lossy' : 'active';
}
