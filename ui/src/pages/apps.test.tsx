// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient, type Session } from '../api/session';
import { Apps } from './apps';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const app = (imageURL?: string) => ({
  kind: 'App',
  meta: { id: 'app-1', name: 'jupyter' },
  spec: { displayName: 'JupyterLab', version: '1', image: 'debian-13', imageURL },
});

function show(role: Session['role'], imageURL?: string) {
  const asked = answering({ apps: { items: [app(imageURL)] } });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Apps session={{ role, name: 'ann' } as unknown as Session} />
    </QueryClientProvider>,
  );
  return asked;
}

test('an operator imports the image that an app lacks', async () => {
  const asked = show('operator', 'https://images.example/debian.qcow2');
  await userEvent.click(await screen.findByRole('button', { name: 'Import image: debian-13' }));
  expect(asked).toEqual([
    {
      method: 'POST',
      path: 'images',
      body: {
        kind: 'Image',
        meta: { name: 'debian-13' },
        spec: { format: 'qcow2', url: 'https://images.example/debian.qcow2', public: true },
      },
    },
  ]);
});

test('others are only told, and so is an operator where no address is known', async () => {
  show('member', 'https://images.example/debian.qcow2');
  expect(await screen.findByText(/image debian-13 has not been imported/)).toBeVisible();
  expect(screen.queryByRole('button')).toBeNull();
  cleanup();
  show('operator');
  expect(await screen.findByText(/image debian-13 has not been imported/)).toBeVisible();
  expect(screen.queryByRole('button')).toBeNull();
});

test('apps have pictograms, and are narrowed by category', async () => {
  const of = (name: string, spec: object) => ({
    kind: 'App',
    meta: { id: `app-${name}`, name },
    spec: { displayName: name, version: '1', image: 'debian-13', ...spec },
  });
  answering({
    apps: {
      items: [
        of('notes', { category: 'workbench', icon: 'notebook' }),
        of('talk', { category: 'inference', icon: 'chat' }),
        of('own', { category: 'games' }),
      ],
    },
  });
  const { container } = render(
    <QueryClientProvider client={newQueryClient()}>
      <Apps session={{ role: 'member' } as Session} />
    </QueryClientProvider>,
  );
  await screen.findByRole('heading', { name: 'notes' });
  const icons = () => [...container.querySelectorAll('[data-icon]')].map((i) => i.getAttribute('data-icon'));
  expect(icons()).toEqual(['notebook', 'chat', 'cube']);
  const names = screen.getAllByRole('button').map((b) => b.textContent);
  expect(names).toEqual(['All', 'games', 'Inference', 'Workbenches']);
  await userEvent.click(screen.getByRole('button', { name: 'Inference' }));
  expect(icons()).toEqual(['chat']);
  expect(screen.queryByRole('heading', { name: 'notes' })).toBeNull();
  await userEvent.click(screen.getByRole('button', { name: 'All' }));
  expect(icons()).toHaveLength(3);
});

test('apps of one category need no choice', async () => {
  show('member');
  await screen.findByRole('heading', { name: 'JupyterLab' });
  expect(screen.queryByRole('button', { name: 'All' })).toBeNull();
});
