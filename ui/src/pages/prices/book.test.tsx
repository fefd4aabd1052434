// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { BookPage } from './book';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '#/prices/pb-1'));

const gib = 2 ** 30;
const book = {
  kind: 'PriceBook',
  meta: { id: 'pb-1', name: 'default', generation: 1 },
  spec: {
    currency: 'EUR',
    prices: [
      { meter: 'vcpu-seconds', priceMicros: 10_000, per: 3600, unit: 'vCPU hour' },
      {
        meter: 'gpu-share-seconds',
        priceMicros: 3_000_000,
        per: 360_000,
        where: { model: 'NVIDIA H100', flavor: 'flv-1' },
      },
      { meter: 'volume-byte-seconds', priceMicros: 50_000, per: gib * 3600 * 720 },
    ],
  },
};
const month = (amountMicros: number) => ({
  totalMicros: amountMicros,
  meters: [{ meter: 'vcpu-seconds', amountMicros }],
  hour: { reservedMicros: amountMicros / 720, fullUseMicros: amountMicros / 360 },
  month: { reservedMicros: amountMicros, fullUseMicros: 2 * amountMicros },
});

/** show renders the page; the server's quote has changed prices in it only if changed is given. */
function show(role: Session['role'], changed?: object) {
  const asked = answering({
    'price-books/pb-1': book,
    'price-books/pb-1/quote': {
      currency: 'EUR',
      vcpus: 2,
      memoryBytes: 1,
      rootBytes: 1,
      current: month(14_400_000),
      changed,
    },
    flavors: { items: [{ kind: 'Flavor', meta: { id: 'flv-1', name: 'small' }, spec: {} }] },
    offers: {
      asOf: '',
      items: [
        { kind: 'Offer', model: 'NVIDIA H100', pool: 'default', tier: 'standard', gpuVramBytes: 80 * gib, prices: [] },
      ],
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <BookPage id="pb-1" session={{ role, name: 'ann', organization: 'org-r' } as unknown as Session} />
    </QueryClientProvider>,
  );
  const quotes = () => asked.filter((a) => a.path.endsWith('/quote')).map((a) => a.body as Record<string, unknown>);
  return quotes;
}

test('all prices are shown in groups, with what a month costs', async () => {
  show('operator');
  const compute = await screen.findByRole('table', { name: 'Compute' });
  expect(within(compute).getByRole('row', { name: /vCPU/ })).toHaveTextContent('€0.01 per vCPU-hour€7.20');
  const gpu = screen.getByRole('table', { name: 'GPU' });
  expect(await within(gpu).findByText(/NVIDIA H100, small/)).toBeVisible();
  expect(within(gpu).getByText('€2,160.00')).toBeVisible();
  expect(within(gpu).getByText('€216.00')).toBeVisible(); // a tenth
  expect(screen.getByRole('table', { name: 'Storage' })).toHaveTextContent('€0.05 per GiB-month');
});

test('the sample machine is quoted by the server, and edited prices are compared', async () => {
  const quotes = show('operator', month(28_800_000));
  await waitFor(() =>
    expect(quotes().at(-1)).toMatchObject({ flavor: 'flv-1', model: 'NVIDIA H100', vramBytes: 20 * gib }),
  );
  expect(quotes().at(-1)).not.toHaveProperty('prices');
  const price = screen.getAllByLabelText('Price (EUR)')[0]!;
  await userEvent.clear(price);
  await userEvent.type(price, '0.02');
  await waitFor(() => expect(quotes().at(-1)).toMatchObject({ prices: { prices: [{ priceMicros: 20_000 }, {}, {}] } }));
  const sample = await screen.findByRole('table', { name: 'Sample machine' });
  expect(within(sample).getByRole('row', { name: /Total/ })).toHaveTextContent('Total€14.40€28.80€14.40');
  const ends = screen.getByRole('table', { name: 'From idle to full use of the GPU' });
  const row = (name: string) => within(ends).getByRole('row', { name: new RegExp(`^${name}`) });
  expect(row('Per hour, reserved')).toHaveTextContent('€0.02€0.04€0.02');
  expect(row('Per month, full use')).toHaveTextContent('€28.80€57.60€28.80');
});

test('hours, share and disk are part of the quote', async () => {
  const quotes = show('operator');
  for (const [label, value] of [
    ['Hours per month (up to 720)', '100'],
    ['Share of the GPU (%)', '50'],
    ['Disk (GiB)', '10'],
  ] as const) {
    const field = await screen.findByLabelText(label);
    await userEvent.clear(field);
    await userEvent.type(field, value);
  }
  await waitFor(() =>
    expect(quotes().at(-1)).toMatchObject({ hours: 100, sharePercent: 50, vramBytes: 40 * gib, rootBytes: 10 * gib }),
  );
});

test('a reseller reads the price book that it pays by', async () => {
  show('reseller');
  expect(await screen.findByRole('table', { name: 'Compute' })).toBeVisible();
  expect(await screen.findByRole('table', { name: 'Sample machine' })).toHaveTextContent('€14.40');
  expect(screen.queryByRole('button', { name: 'Save prices' })).toBeNull();
});
