// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test } from 'vitest';
import type { Instance } from '../api/client';
import { PhaseLabel } from './phase';

afterEach(cleanup);

const pending = (assignment: object = {}): Instance => ({
  kind: 'Instance',
  meta: { name: 'demo' },
  spec: { flavor: 'tiny' },
  assignment,
});

test('a pending instance says what it waits for', async () => {
  render(<PhaseLabel instance={pending()} />);
  await userEvent.hover(screen.getByText('Pending'));
  expect(await screen.findByText('Waiting for a node with enough free capacity.')).toBeInTheDocument();
  cleanup();
  render(
    <PhaseLabel
      instance={pending({ reason: 'no node fits', cause: { code: 'no-room', missing: 'cpus', count: 64 } })}
    />,
  );
  await userEvent.tab();
  expect(await screen.findByText('64 vCPUs are not free in one place now.')).toBeInTheDocument();
});
