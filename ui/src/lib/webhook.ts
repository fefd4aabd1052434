// A webhook's state in one word.
import type { Schemas } from '../api/client';

export type WebhookState = 'active' | 'paused' | 'retrying' | 'lossy';

/** stateOf returns the state of a webhook; lossy: it works, but events were abandoned before. */
export function stateOf({ spec, status }: Pick<Schemas['Webhook'], 'spec' | 'status'>): WebhookState {
  if (spec.paused) return 'paused';
  if (status?.attempts) return 'retrying';
  return status?.givenUp ? 'lossy' : 'active';
}
