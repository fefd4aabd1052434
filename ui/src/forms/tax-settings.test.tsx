// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import type { TaxSettings } from '../api/taxes';
import { TaxSettingsForm } from './tax-settings';

afterEach(cleanup);

function show(settings: TaxSettings) {
  const asked = answering({ 'tax-settings': settings });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <TaxSettingsForm settings={settings} />
    </QueryClientProvider>,
  );
  return asked;
}

const save = () => userEvent.click(screen.getByRole('button', { name: 'Save' }));

test('a rate is sent in hundredths of a percent', async () => {
  const asked = show({ revision: 3 });
  const user = userEvent.setup();
  await user.type(screen.getByLabelText('Country'), 'de');
  await user.type(screen.getByLabelText('VAT number'), 'DE136695976');
  await user.click(screen.getByLabelText(/Reverse charge/));
  await user.click(screen.getByRole('button', { name: 'Add rate' }));
  await user.type(screen.getByLabelText(/Customer’s country/), 'DE');
  await user.type(screen.getByLabelText('Tax name'), 'VAT');
  await user.type(screen.getByLabelText('Percentage (%)'), '19.5');
  await save();
  await waitFor(() => expect(asked).toHaveLength(1));
  expect(asked[0]).toMatchObject({
    method: 'PATCH',
    path: 'tax-settings',
    body: {
      country: 'DE',
      taxId: 'DE136695976',
      reverseCharge: true,
      rates: [{ country: 'DE', name: 'VAT', basisPoints: 1950 }],
    },
  });
});

test('a wrong percentage is not sent, and settings that wait for a decision say so', async () => {
  const asked = show({ revision: 1, undecided: true, rates: [{ country: 'DE', name: 'VAT', basisPoints: 1900 }] });
  expect(screen.getByText(/no invoices are issued/)).toBeVisible();
  const user = userEvent.setup();
  await user.clear(screen.getByLabelText('Percentage (%)'));
  await user.type(screen.getByLabelText('Percentage (%)'), 'much');
  await save();
  expect(await screen.findAllByText(/percentage/i)).not.toHaveLength(0);
  expect(asked).toHaveLength(0);
});
