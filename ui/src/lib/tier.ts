/** Tier of a virtual GPU: its priority for GPU time, and the price of that. */
export type Tier = 'premium' | 'standard' | 'basic';
export const tiers: Tier[] = ['premium', 'standard', 'basic'];
