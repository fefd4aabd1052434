import { expect, test } from 'vitest';
import { bookForm, newPrice, specOf } from './book';

const gib = 2 ** 30;
const spec = {
  currency: 'EUR',
  prices: [
    { meter: 'vcpu-seconds', priceMicros: 10_000, per: 3600, unit: 'vCPU hour' },
    { meter: 'vcpu-seconds', priceMicros: 12_500, per: 3600, unit: 'vCPU hour', from: '2027-01-01T00:00:00Z' },
    {
      meter: 'egress-bytes',
      priceMicros: 5_000,
      per: gib,
      unit: 'GiB sent out',
      tiers: [
        { upTo: 100, priceMicros: 0 },
        { upTo: 1000, priceMicros: 8_000 },
      ],
    },
    { meter: 'gpu-nanoseconds', priceMicros: 1_800_000, per: 3_600_000_000_000, unit: 'GPU hour' },
    { meter: 'gpu-launches', priceMicros: 1, per: 7, unit: 'seven launches' }, // in none of the form's units
  ],
  commitments: [
    {
      meter: 'gpu-nanoseconds',
      quantity: 720,
      per: 3_600_000_000_000,
      priceMicros: 900_000_000,
      until: '2027-01-01T00:00:00Z',
    },
  ],
  discounts: [
    { basisPoints: 1250 },
    { meters: ['vcpu-seconds', 'memory-byte-seconds'], basisPoints: 500, from: '2026-06-01T00:00:00Z' },
  ],
  minimumMicros: 5_000_000,
  seller: { name: 'Cloud AG', address: ['Street 1', 'Town'], taxId: 'DE1' },
};

test('a book comes back as it was', () => {
  const form = bookForm(spec);
  expect(form.prices[0]).toMatchObject({ unit: 'vcpu-hour', price: '0.01', from: '' });
  expect(form.prices[1]).toMatchObject({ price: '0.0125', from: '2027-01-01T00:00' });
  expect(form.discounts[0]?.percent).toBe('12.50');
  expect(specOf('EUR', form)).toEqual({ spec, problems: {} });
});

test('what is wrong is said at its path', () => {
  const form = bookForm({ currency: 'EUR', prices: [] });
  form.prices = [
    { ...newPrice('vcpu-seconds'), price: 'much' },
    { ...newPrice('egress-bytes'), price: '0.0000001', tiers: [{ upTo: '1.5', price: '' }] },
  ];
  form.minimum = '-1';
  expect(specOf('EUR', form).problems).toEqual({
    'spec.prices[0].priceMicros': 'price',
    'spec.prices[1].priceMicros': 'digits',
    'spec.prices[1].tiers[0].upTo': 'number',
    'spec.prices[1].tiers[0].priceMicros': 'price',
    'spec.minimumMicros': 'amount',
  });
});

test('a price of many digits is per more units, and has no name that says one', () => {
  const form = bookForm({ currency: 'EUR', prices: [] });
  form.prices = [{ ...newPrice('memory-byte-seconds'), price: '0.0000004' }];
  const { spec: s, problems } = specOf('EUR', form);
  expect(problems).toEqual({});
  expect(s.prices).toEqual([{ meter: 'memory-byte-seconds', priceMicros: 2, per: gib * 3600 * 5 }]);
  expect(bookForm(s).prices[0]).toMatchObject({ unit: 'gib-hour', price: '0.0000004' });
});
