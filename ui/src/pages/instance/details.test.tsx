// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, render, screen } from '@testing-library/react';
import { afterEach, expect, test } from 'vitest';
import type { Instance } from '../../api/client';
import { answering } from '../../api/fake';
import { newQueryClient } from '../../api/session';
import { Details } from './details';

afterEach(cleanup);

function show(spec: Partial<Instance['spec']>, cells?: NonNullable<Instance['assignment']>['cells']) {
  answering({
    flavors: { items: [{ kind: 'Flavor', meta: { id: 'flv-1', name: 'f' }, spec: { cpuPolicy: 'optional' } }] },
  });
  const instance: Instance = {
    kind: 'Instance',
    meta: { id: 'ins-1', name: 'web-1', project: 'prj-1' },
    spec: { flavor: 'flv-1', image: 'img-1', ...spec },
    assignment: { node: 'node-1', cells },
    status: { machine: { cpu: { class: 'baseline', cpu: { model: 'EPYC-Rome' } } } },
  };
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Details instance={instance} />
    </QueryClientProvider>,
  );
}

test('the processor and the CPUs of the present run are shown', async () => {
  show({ cpuPolicy: 'dedicated' }, [{ cell: 0, cpus: '2-3', memoryBytes: 1 }]);
  expect(await screen.findByText('Dedicated CPUs')).toBeVisible();
  expect(screen.getByText('What all nodes support, EPYC-Rome')).toBeVisible();
});

test('changes that wait for the next start are shown', async () => {
  show({ cpu: 'host', cpuPolicy: 'dedicated' });
  expect(await screen.findByText('Shared; from the next start: Dedicated CPUs')).toBeVisible();
  expect(
    screen.getByText('What all nodes support, EPYC-Rome; from the next start: The node’s processor'),
  ).toBeVisible();
});
