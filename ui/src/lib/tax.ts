// A seller's tax settings in their form, and the conversion back.
import type { Schemas } from '../api/client';
import { basisPoints, local, moment, percentOf } from './book';
import { nextKey } from './merge';

type TaxSettings = Schemas['TaxSettings'];

export interface TaxRow {
  key: number;
  country: string;
  region: string;
  name: string;
  percent: string;
  /** In the format of a datetime-local input, in UTC; empty means always. */
  from: string;
}

export interface TaxForm {
  country: string;
  taxId: string;
  reverseCharge: boolean;
  verifyNumbers: boolean;
  rates: TaxRow[];
  otherName: string;
  otherPercent: string;
}

export const newTaxRow = (): TaxRow => ({ key: nextKey(), country: '', region: '', name: '', percent: '', from: '' });

export const taxForm = (s: TaxSettings | undefined): TaxForm => ({
  country: s?.country ?? '',
  taxId: s?.taxId ?? '',
  reverseCharge: s?.reverseCharge ?? false,
  verifyNumbers: s?.verifyNumbers ?? false,
  rates: (s?.rates ?? []).map((r) => ({
    key: nextKey(),
    country: r.country,
    region: r.region ?? '',
    name: r.name,
    percent: percentOf(r.basisPoints),
    from: local(r.from),
  })),
  otherName: s?.other?.name ?? '',
  otherPercent: s?.other ? percentOf(s.other.basisPoints) : '',
});

/** taxSettingsOf returns the settings of a form, and the paths of the percentages in it that are wrong; with any, the
 * settings must not be sent. */
export function taxSettingsOf(s: TaxSettings | undefined, f: TaxForm): { settings: TaxSettings; wrong: string[] } {
  const wrong: string[] = [];
  const rate = (text: string, path: string) => {
    const n = basisPoints(text);
    if (n === undefined) wrong.push(path);
    return n ?? 0;
  };
  const code = (text: string) => text.trim().toUpperCase();
  const rates = f.rates.map((r, i) => ({
    country: code(r.country),
    ...(r.region.trim() && { region: code(r.region) }),
    name: r.name.trim(),
    basisPoints: rate(r.percent, `rates[${i}].basisPoints`),
    ...(r.from && { from: moment(r.from)?.at }),
  }));
  const other = f.otherName.trim() || f.otherPercent.trim();
  return {
    settings: {
      revision: s?.revision,
      country: code(f.country),
      taxId: f.taxId.trim(),
      reverseCharge: f.reverseCharge,
      verifyNumbers: f.verifyNumbers,
      rates,
      other: other ? { name: f.otherName.trim(), basisPoints: rate(f.otherPercent, 'other.basisPoints') } : undefined,
    },
    wrong,
  };
}

/** rateText is a rate as `basalt tax-settings set --rate` takes it. */
export const rateText = (r: TaxRow) =>
  [[r.country, r.region].filter(Boolean).join('/').toUpperCase(), r.name, r.percent, r.from && `${r.from}:00Z`]
    .filter(Boolean)
    .join(' ');
