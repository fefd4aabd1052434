// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import type { Schemas } from '../api/client';
import { answering } from '../api/fake';
import { newQueryClient, type Session } from '../api/session';
import { AddImage } from './image';
import { EditImage } from './image-edit';

afterEach(cleanup);

const show = (what: React.ReactNode) =>
  render(<QueryClientProvider client={newQueryClient()}>{what}</QueryClientProvider>);

const image = (spec: Partial<Schemas['ImageSpec']>): Schemas['Image'] => ({
  kind: 'Image',
  meta: { id: 'img-1', name: 'debian', revision: 2 },
  spec: { format: 'qcow2', public: true, sha256: 'a'.repeat(64), ...spec },
});

test('an image is imported with what is known of it', async () => {
  const asked = answering({});
  const closed = vi.fn();
  show(
    <AddImage
      session={{ role: 'operator' } as Session}
      everybody
      name="debian"
      url="https://example.com/debian.qcow2"
      onClose={closed}
    />,
  );
  await userEvent.click(screen.getByRole('button', { name: 'What the image can do' }));
  await userEvent.selectOptions(screen.getByLabelText('Driver for a virtual GPU'), 'new-kernel');
  await userEvent.selectOptions(screen.getByLabelText('Guest agent'), 'absent');
  await userEvent.selectOptions(screen.getByLabelText('Operating system'), 'Linux');
  await userEvent.type(screen.getByLabelText('Its name and version'), 'Debian 13');
  await userEvent.type(screen.getByLabelText('Default user'), 'debian');
  expect(
    screen.getByText(
      /--vgpu new-kernel.*--guest-agent absent.*--os linux.*--os-name 'Debian 13'.*--default-user debian/s,
    ),
  ).toBeInTheDocument();
  await userEvent.click(screen.getByRole('button', { name: 'Import' }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]).toMatchObject({
    path: 'images',
    body: {
      spec: {
        abilities: { vgpu: 'new-kernel', guestAgent: 'absent', os: 'linux', osName: 'Debian 13' },
        defaultUser: 'debian',
      },
    },
  });
});

test('what is not known is not sent', async () => {
  const asked = answering({});
  const closed = vi.fn();
  show(
    <AddImage
      session={{ role: 'operator' } as Session}
      everybody
      name="debian"
      url="https://example.com/debian.qcow2"
      onClose={closed}
    />,
  );
  await userEvent.click(screen.getByRole('button', { name: 'Import' }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]?.body).toEqual({
    kind: 'Image',
    meta: { name: 'debian' },
    spec: { format: 'qcow2', url: 'https://example.com/debian.qcow2', public: true },
  });
});

async function edited(was: Schemas['Image'], change: () => Promise<void>) {
  const asked = answering({ 'images/img-1': was });
  const closed = vi.fn();
  show(<EditImage image={was} onClose={closed} />);
  await change();
  await userEvent.click(screen.getByRole('button', { name: 'Save' }));
  await waitFor(() => expect(closed).toHaveBeenCalled());
  expect(asked[0]).toMatchObject({ method: 'PATCH', path: 'images/img-1' });
  return asked[0]?.body;
}

test('an ability is set, and the others stay', async () => {
  const body = await edited(image({ abilities: { guestAgent: 'present' }, defaultUser: 'debian' }), () =>
    userEvent.selectOptions(screen.getByLabelText('Driver for a virtual GPU'), 'supported'),
  );
  expect(body).toEqual({ spec: { abilities: { vgpu: 'supported' } } });
});

test('an ability becomes unknown, and the command says so', async () => {
  const body = await edited(image({ abilities: { vgpu: 'supported' } }), async () => {
    await userEvent.selectOptions(screen.getByLabelText('Driver for a virtual GPU'), 'Not known');
    expect(screen.getByText(/basalt image set debian.*--vgpu=$/s)).toBeInTheDocument();
  });
  expect(body).toEqual({ spec: { abilities: { vgpu: null } } });
});
