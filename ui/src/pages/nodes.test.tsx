// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answering } from '../api/fake';
import { newQueryClient } from '../api/session';
import type { Node } from '../lib/node';
import { NodeService } from './maintenance/nodes';
import { Nodes } from './nodes';

afterEach(cleanup);
beforeEach(() => history.replaceState(null, '', '/'));

const node = (name: string, spec: Node['spec'] = {}): Node => ({
  kind: 'Node',
  meta: { id: `nod-${name}`, name, revision: 4 },
  spec,
  assignment: { state: spec.drain ? 'Drained' : 'Ready' },
});
const all = [node('n1'), node('n2', { unschedulable: true }), node('n3', { drain: true }), node('n4')];

test.each([
  ['Cordon', { unschedulable: true }, ['nod-n1', 'nod-n4']],
  ['Uncordon', { unschedulable: false }, ['nod-n2']],
  ['Return to service', { drain: false }, ['nod-n3']],
])('%s applies to the selected nodes whose state allows it, in both lists', async (action, spec, nodes) => {
  for (const Page of [Nodes, NodeService]) {
    const asked = answering({
      nodes: { items: all },
      ...Object.fromEntries(all.map((n) => [`nodes/${n.meta.id}`, n])),
    });
    render(
      <QueryClientProvider client={newQueryClient()}>
        <Page />
      </QueryClientProvider>,
    );
    await userEvent.click(await screen.findByRole('checkbox', { name: 'Select all rows on this page' }));
    const bar = within(screen.getByRole('toolbar'));
    // Several nodes are not drained at once.
    expect(bar.queryByRole('button', { name: 'Drain' })).toBeNull();
    await userEvent.click(bar.getByRole('button', { name: action }));
    await userEvent.click(within(screen.getByRole('dialog')).getByRole('button', { name: action }));
    await waitFor(() => expect(asked.map((a) => a.path).sort()).toEqual(nodes.map((n) => `nodes/${n}`)));
    for (const { method, body } of asked) expect([method, body]).toEqual(['PATCH', { spec }]);
    await waitFor(() => expect(screen.queryByRole('dialog')).toBeNull());
    cleanup();
  }
});
