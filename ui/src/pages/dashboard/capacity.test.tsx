// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import { answering } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { CapacityCard } from './capacity';

afterEach(cleanup);

const gpu = { pool: 'default', count: 2, vramBytes: 1, allocatedPercent: 50, history: 28 };

test('the card shows forecasts of models that grow, with their interval', async () => {
  answering({
    capacity: {
      asOf: '',
      gpus: [
        { ...gpu, model: 'NVIDIA H100', trend: 'growing', fullInDays: 20, earliestDays: 15, latestDays: 31 },
        { ...gpu, model: 'NVIDIA L4', trend: 'steady' },
      ],
    },
  });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <CapacityCard cards={[]} />
    </QueryClientProvider>,
  );
  expect(await screen.findByText('NVIDIA H100: full in about 20 days (15 to 31) at this rate.')).toBeVisible();
  expect(screen.getByText(/probability of 80 %/)).toBeVisible();
  expect(screen.queryByText(/NVIDIA L4/)).toBeNull();
});
