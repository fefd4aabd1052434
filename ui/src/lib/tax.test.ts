import { expect, test } from 'vitest';
import { rateText, taxForm, taxSettingsOf } from './tax';

const settings = {
  revision: 4,
  country: 'DE',
  taxId: 'DE136695976',
  reverseCharge: true,
  verifyNumbers: true,
  rates: [
    { country: 'DE', name: 'VAT', basisPoints: 1900 },
    { country: 'DE', name: 'VAT', basisPoints: 2050, from: '2028-01-01T00:00:00Z' },
    { country: 'ES', region: 'ES-CN', name: 'IGIC', basisPoints: 700 },
  ],
  other: { name: 'Sales tax', basisPoints: 250 },
};

test('settings come back as they were', () => {
  const form = taxForm(settings);
  expect(form.rates[1]).toMatchObject({ percent: '20.50', from: '2028-01-01T00:00' });
  expect(taxSettingsOf(settings, form)).toEqual({ settings, wrong: [] });
});

test('codes are sent in capital letters, and no other tax as none', () => {
  const form = { ...taxForm(settings), country: ' fr', otherName: '', otherPercent: '' };
  const { settings: sent, wrong } = taxSettingsOf(settings, form);
  expect(sent).toMatchObject({ country: 'FR', other: undefined });
  expect(wrong).toEqual([]);
});

test('percentages that are wrong are named by their path', () => {
  const form = taxForm(settings);
  form.rates[2] = { ...form.rates[2]!, percent: '7.001' };
  form.otherPercent = 'much';
  expect(taxSettingsOf(settings, form).wrong).toEqual(['rates[2].basisPoints', 'other.basisPoints']);
});

test('a rate is the one of the command line', () => {
  expect(taxForm(settings).rates.map(rateText)).toEqual([
    'DE VAT 19',
    'DE VAT 20.50 2028-01-01T00:00:00Z',
    'ES/ES-CN IGIC 7',
  ]);
});
