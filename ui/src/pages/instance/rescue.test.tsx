// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Instance } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { Rescue, Rescued } from './rescue';

afterEach(cleanup);

const image = (id: string, format: string) => ({
  kind: 'Image',
  meta: { id: `img-${id}`, name: id },
  spec: { format, public: true },
});
const instance = (spec: Partial<Instance['spec']>): Instance => ({
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'web-1', project: 'prj-1' },
  spec: { flavor: 'flv-1', power: 'Running', ...spec },
});

function show(what: React.ReactElement, images = [image('debian', 'qcow2'), image('live', 'iso')]) {
  const asked = answering({ images: { items: images } });
  render(<QueryClientProvider client={newQueryClient()}>{what}</QueryClientProvider>);
  return asked;
}

const rescued = (role: string, spec: Partial<Instance['spec']>) => (
  <Rescued session={{ role, organization: 'org-1' } as Session} instance={instance(spec)} />
);

test('an instance is restarted from a medium; a disk image is not offered', async () => {
  const closed = vi.fn();
  const asked = show(<Rescue instance={instance({})} onClose={closed} />);
  expect(await screen.findByRole('option', { name: 'live' })).toBeVisible();
  expect(screen.queryByRole('option', { name: 'debian' })).toBeNull();
  expect(screen.getByText(/basalt instance rescue web-1.*--medium live/s)).toBeInTheDocument();
  await userEvent.click(screen.getByRole('button', { name: 'Restart from the medium' }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked).toEqual([{ method: 'POST', path: 'instances/ins-1/rescue', body: { medium: 'img-live' } }]);
});

test('without a medium it says what to do', async () => {
  show(<Rescue instance={instance({})} onClose={vi.fn()} />, []);
  expect(await screen.findByText(/Import an image of the format iso/)).toBeVisible();
  expect(screen.getByRole('button', { name: 'Restart from the medium' })).toBeDisabled();
});

test('a rescue is ended after a confirmation', async () => {
  const asked = show(rescued('member', { rescue: 'img-live' }));
  expect(await screen.findByText(/rescue medium live/)).toBeVisible();
  await userEvent.click(screen.getByRole('button', { name: 'End the rescue' }));
  expect(screen.getByText(/restarted from its root disk/)).toBeVisible();
  const buttons = screen.getAllByRole('button', { name: 'End the rescue' });
  await userEvent.click(buttons[buttons.length - 1] as HTMLElement);
  await waitFor(() => expect(asked).toEqual([{ method: 'POST', path: 'instances/ins-1/unrescue' }]));
});

test('a viewer sees the rescue only, and others see nothing', async () => {
  show(rescued('viewer', { rescue: 'img-live' }));
  expect(await screen.findByText(/rescue medium live/)).toBeVisible();
  expect(screen.queryByRole('button')).toBeNull();
  cleanup();
  show(rescued('member', {}));
  expect(screen.queryByText(/rescue medium/)).toBeNull();
});
