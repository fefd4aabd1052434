// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import { Money, Quantity } from './exact';

afterEach(cleanup);

test('a rounded quantity shows the exact one on hover', async () => {
  render(<Quantity meter="gpu-nanoseconds" n={4_444_444_441_234} />);
  await userEvent.hover(screen.getByText('1.235 GPU h'));
  expect(await screen.findByText('1.23456790034 GPU h (4,444,444,441,234 ns)')).toBeInTheDocument();
});

test('a rounded amount shows the exact one on focus', async () => {
  render(<Money micros={1_234_567} currency="EUR" />);
  await userEvent.tab();
  expect(screen.getByText('€1.23')).toHaveFocus();
  expect(await screen.findByText('€1.234567')).toBeInTheDocument();
});

test('an exact amount is no stop of the keyboard', async () => {
  render(<Money micros={1_500_000} currency="EUR" />);
  await userEvent.tab();
  expect(screen.getByText('€1.50')).not.toHaveFocus();
});
