// Quotas as a form holds them: sizes in GiB, empty for no limit.
import { gib } from './draft';

export const quotas = ['instances', 'vcpus', 'memoryBytes', 'vramBytes', 'gpuSharePercent', 'volumeBytes', 'floatingIPs'] as const;
export type Quota = (typeof quotas)[number];

const unit = (q: Quota) => (q.endsWith('Bytes') ? gib : 1);

export const draftQuota = (amounts: Record<string, number> = {}): Record<Quota, string> =>
  Object.fromEntries(quotas.map((q) => [q, amounts[q] === undefined ? '' : String(amounts[q] / unit(q))])) as Record<Quota, string>;

/** amountsOf a form; what is empty has no limit. */
export const amountsOf = (draft: Record<Quota, string>): Record<string, number> =>
  Object.fromEntries(quotas.filter((q) => draft[q].trim() !== '').map((q) => [q, Math.round(Number(draft[q]) * unit(q))]));
