// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor } from '@testing-library/react';
import { afterEach, expect, test, vi } from 'vitest';
import type { Instance } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient, type Session } from '../../api/session';
import { Console } from './console';
import Shell from './shell';

interface Made {
  onSize: (columns: number, rows: number) => void;
}
const terminals: Made[] = [];
vi.mock('../../lib/terminal', () => ({
  openTerminal: (_: HTMLElement, made: Made) => {
    terminals.push(made);
    made.onSize(100, 30);
    return { attach: () => undefined, focus: () => undefined, dispose: () => undefined };
  },
}));

class Socket extends EventTarget {
  static readonly OPEN = 1;
  static readonly CONNECTING = 0;
  static all: Socket[] = [];
  readyState = 1;
  binaryType = '';
  sent: string[] = [];
  constructor(readonly url: URL) {
    super();
    Socket.all.push(this);
  }
  send(text: string) {
    this.sent.push(text);
  }
  close() {
    this.readyState = 3;
  }
  ends(code: number, reason: string) {
    this.dispatchEvent(Object.assign(new Event('close'), { code, reason }));
  }
}

afterEach(() => {
  cleanup();
  Socket.all = [];
});

const within = (node: React.ReactNode) =>
  render(<QueryClientProvider client={newQueryClient()}>{node}</QueryClientProvider>);

const instance: Instance = {
  kind: 'Instance',
  meta: { id: 'ins-1', name: 'demo', project: 'prj-1' },
  spec: { flavor: 'tiny', image: 'img-1' },
  status: { phase: 'Running', node: 'node-1', epoch: 1 },
};
const member = { me: { role: 'member' }, role: 'member' } as unknown as Session;

test('the console begins with a shell where there is a gateway', async () => {
  vi.stubGlobal('WebSocket', Socket);
  answering({
    'instances/ins-1/connection': {
      user: 'debian',
      addresses: [],
      gateway: { port: 2222, hostKey: '', fingerprint: '' },
    },
  });
  within(<Console session={member} instance={instance} />);
  expect(await screen.findByRole('group', { name: 'Shell' })).toBeVisible();
  expect(screen.getByRole('button', { name: 'Serial' })).toBeVisible();
});

test('and with the serial port where there is none', async () => {
  vi.stubGlobal('WebSocket', Socket);
  answering({ 'instances/ins-1/connection': { user: 'debian', addresses: [] } });
  within(<Console session={member} instance={instance} />);
  expect(await screen.findByRole('group', { name: 'Serial console' })).toBeVisible();
  expect(screen.queryByRole('button', { name: 'Shell' })).toBeNull();
});

test('a shell says what terminal it has, its size, and that it has ended', async () => {
  vi.stubGlobal('WebSocket', Socket);
  within(<Shell id="ins-1" />);
  await waitFor(() => expect(Socket.all).toHaveLength(1));
  const socket = Socket.all[0]!;
  expect(socket.url.pathname).toMatch(/\/v1\/instances\/ins-1\/shell$/);
  socket.dispatchEvent(new MessageEvent('message', { data: new ArrayBuffer(0) }));
  expect(socket.sent.map((s) => JSON.parse(s) as unknown)).toEqual([
    { start: { terminal: 'xterm-256color', columns: 100, rows: 30 } },
  ]);
  terminals.at(-1)?.onSize(120, 40);
  expect(JSON.parse(socket.sent[1]!)).toEqual({ resize: { columns: 120, rows: 40 } });
  expect(await screen.findByText('Connected.')).toBeVisible();
  socket.ends(1000, '');
  expect(await screen.findByText('The shell has ended.')).toBeVisible();
  screen.getByRole('button', { name: 'Open again' }).click();
  await waitFor(() => expect(Socket.all).toHaveLength(2));
  Socket.all[1]!.ends(4403, 'no');
  expect(await screen.findByText('Not connected: no.')).toBeVisible();
});
