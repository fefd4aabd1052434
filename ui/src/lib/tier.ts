/** Tier of a virtual GPU: how soon it gets the GPU, and what its time costs. */
export type Tier = 'premium' | 'standard' | 'basic';
export const tiers: Tier[] = ['premium', 'standard', 'basic'];
