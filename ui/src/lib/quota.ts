// Quotas in a form: sizes in GiB, which the API has in bytes.
import type { Key } from '../i18n';
import { gib } from './draft';

export const quotas = [
  'instances',
  'vcpus',
  'memoryBytes',
  'vramBytes',
  'gpuSharePercent',
  'volumeBytes',
  'floatingIPs',
] as const;
export type Quota = (typeof quotas)[number];

export const quotaKey = (q: Quota): Key => `quota.${q}`;
export const isSize = (q: string) => q.endsWith('Bytes');

/** QuotaForm has an empty text where there is no limit. */
export type QuotaForm = Record<Quota, string>;

export function quotaForm(limits: Record<string, number> = {}): QuotaForm {
  const text = (q: Quota) => (limits[q] === undefined ? '' : String(isSize(q) ? limits[q] / gib : limits[q]));
  return Object.fromEntries(quotas.map((q) => [q, text(q)])) as QuotaForm;
}

/** wrong lists the quotas whose text is not a number. */
export const wrong = (f: QuotaForm): Quota[] =>
  quotas.filter((q) => f[q].trim() !== '' && !/^\d{1,9}(?:[.,]\d{1,3})?$/.test(f[q].trim()));

/** limitsOf returns the limits of a valid form; limits that the form does not show keep their values. */
export function limitsOf(f: QuotaForm, was: Record<string, number> = {}): Record<string, number> {
  const out = Object.fromEntries(Object.entries(was).filter(([q]) => !(quotas as readonly string[]).includes(q)));
  for (const q of quotas) {
    const text = f[q].trim().replace(',', '.');
    if (text !== '') out[q] = isSize(q) ? Math.round(Number(text) * gib) : Math.round(Number(text));
  }
  return out;
}

/** flags returns the command's flags that set the limits. */
export function flags(limits: Record<string, number>): string[] {
  return quotas
    .filter((q) => limits[q] !== undefined)
    .map((q) => `--quota ${q}=${isSize(q) && limits[q]! % gib === 0 ? `${limits[q]! / gib}GiB` : limits[q]}`);
}
