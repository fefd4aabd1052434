// How the states of payments by card are shown.
import type { Key } from '../i18n';
import type { Tone } from './tone';

export const checkoutStates = {
  Opening: ['busy', 'pay.state.Opening'],
  Open: ['busy', 'pay.state.Open'],
  Processing: ['busy', 'pay.state.Processing'],
  Paid: ['good', 'pay.state.Paid'],
  Failed: ['bad', 'pay.state.Failed'],
  Expired: ['off', 'pay.state.Expired'],
} as const satisfies Record<string, [Tone, Key]>;
