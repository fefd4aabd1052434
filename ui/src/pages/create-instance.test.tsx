// @vitest-environment jsdom
import '@testing-library/jest-dom/vitest';
import { QueryClientProvider } from '@tanstack/react-query';
import { cleanup, fireEvent, render, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, expect, test, vi } from 'vitest';
import { Router } from 'wouter';
import { memoryLocation } from 'wouter/memory-location';
import { answering } from '../api/fake';
import type { Schemas } from '../api/client';
import { newQueryClient, type Session } from '../api/session';
import { ProjectProvider } from '../parts/project';
import { CreateInstance } from './create-instance';

afterEach(cleanup);

function show(session: Partial<Session>) {
  answering({});
  const { hook, history } = memoryLocation({ path: '/instances/new', record: true });
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Router hook={hook}>
        <CreateInstance session={session as Session} id="" />
      </Router>
    </QueryClientProvider>,
  );
  return history;
}

test('without a project an administrator goes to create one', async () => {
  const visited = show({ role: 'admin', organization: 'org-1' });
  await userEvent.click(await screen.findByRole('button', { name: 'Create project' }));
  expect(visited.at(-1)).toBe('/projects');
});

test('an operator creates it in an organization', async () => {
  const visited = show({ role: 'operator' });
  await userEvent.click(await screen.findByRole('button', { name: 'Create project' }));
  expect(visited.at(-1)).toBe('/organizations');
});

test('a member is told whom to ask', async () => {
  show({ role: 'member', organization: 'org-1' });
  expect(await screen.findByText(/Ask an administrator of your organization/)).toBeVisible();
  expect(screen.queryByRole('button')).toBeNull();
});

const gib = 2 ** 30;
const slice = (percent: number, tier: string, free: number) => ({
  kind: 'Offer',
  model: 'NVIDIA L4',
  pool: 'default',
  gpuVramBytes: 24 * gib,
  vramBytes: (24 * gib * percent) / 100,
  sharePercent: percent,
  tier,
  currency: 'EUR',
  reservedMicros: percent * 10_000,
  fullUseMicros: 1_000_000,
  prices: [
    { meter: 'vcpu-seconds', reservedMicros: 0, fullUseMicros: 0 },
    { meter: 'gpu-share-seconds', reservedMicros: percent * 10_000, fullUseMicros: percent * 10_000 },
    { meter: 'gpu-nanoseconds', reservedMicros: 0, fullUseMicros: 1_000_000 - percent * 10_000 },
  ],
  free,
  nodes: 1,
});

const shop = {
  projects: { items: [{ kind: 'Project', meta: { id: 'prj-1', name: 'web' }, spec: {} }] },
  flavors: {
    items: [
      {
        kind: 'Flavor',
        meta: { id: 'flv-2', name: 'large' },
        spec: { vcpus: 8, memoryBytes: 32 * gib, cpuPolicy: 'optional' },
      },
      { kind: 'Flavor', meta: { id: 'flv-1', name: 'small' }, spec: { vcpus: 1, memoryBytes: gib } },
    ],
  },
  images: {
    items: [
      { kind: 'Image', meta: { id: 'img-1', name: 'debian' }, spec: { public: true }, status: {} },
      { kind: 'Image', meta: { id: 'img-2', name: 'windows' }, spec: { public: true, format: 'iso' }, status: {} },
      { kind: 'Image', meta: { id: 'img-3', name: 'virtio-win' }, spec: { public: true, format: 'iso' }, status: {} },
    ],
  },
  offers: {
    items: [
      {
        kind: 'Offer',
        tier: '',
        currency: 'EUR',
        reservedMicros: 25_000,
        fullUseMicros: 25_000,
        prices: [],
        free: 9,
        nodes: 2,
      },
      slice(100, 'standard', 0),
      slice(50, 'standard', 3),
      slice(50, 'basic', 3),
    ],
  },
};

/** form renders the page with available GPUs, and responds to its requests. */
function form(dryRuns: (query: string, body: { meta?: { name?: string } }) => Response | undefined, id = '') {
  const asked: string[] = [];
  vi.stubGlobal('fetch', async (r: Request) => {
    const url = new URL(r.url);
    const path = url.pathname.replace('/portal/v1/', '');
    if (r.method === 'POST') {
      asked.push(`${path}${url.search}`);
      return (
        dryRuns(url.search, (await r.json()) as { meta?: { name?: string } }) ??
        Response.json({ meta: { id: 'ins-1' } }, { status: 201 })
      );
    }
    return Response.json((shop as Record<string, object>)[path] ?? { items: [] });
  });
  const { hook } = memoryLocation({ path: '/instances/new', record: true });
  const session = { role: 'member', organization: 'org-1' } as Session;
  render(
    <QueryClientProvider client={newQueryClient()}>
      <Router hook={hook}>
        <ProjectProvider session={session}>
          <CreateInstance session={session} id={id} />
        </ProjectProvider>
      </Router>
    </QueryClientProvider>,
  );
  return asked;
}

const problem = (field: string, detail: string) =>
  Response.json({ code: 'invalid', detail, errors: [{ field, detail }] }, { status: 400 });

test('the page begins with GPUs, their prices and what is free', async () => {
  form(() => problem('meta.name', 'no'));
  await userEvent.click(await screen.findByRole('radio', { name: 'NVIDIA L4' }));
  // The whole GPU is in use: the largest free slice is chosen.
  expect(screen.getByRole('radio', { name: '50% of a GPU' })).toBeChecked();
  expect(screen.getByRole('radio', { name: 'Whole GPU' })).not.toBeChecked();
  expect(screen.getByText('None available')).toBeVisible();
  const total = screen.getByRole('rowheader', { name: 'Estimated total' }).closest('tr');
  expect(total).toHaveTextContent('€0.50 / h');
  expect(total).toHaveTextContent('€1.00 / h');
  expect(screen.getByLabelText(/^Flavor/)).toHaveValue('small');
  await userEvent.click(screen.getByRole('radio', { name: 'No GPU' }));
  expect(screen.getByRole('rowheader', { name: 'Estimated total' }).closest('tr')).toHaveTextContent('€0.025 / h');
});

test('errors of a dry run stand at their fields before anything is created', async () => {
  const asked = form((_, body) => problem('meta.name', `an instance is called ${body.meta?.name}`));
  await screen.findByRole('radio', { name: 'NVIDIA L4' }); // the project is loaded, which images depend on
  await screen.findByRole('option', { name: 'debian' });
  await userEvent.selectOptions(screen.getByLabelText(/^Image or app/), 'image:debian');
  await named('web-1');
  expect(await screen.findByText('an instance is called web-1')).toBeVisible();
  expect(new Set(asked)).toEqual(new Set(['instances?dryRun=all']));
});

test('that it would wait for capacity is said before it is created, and it can be', async () => {
  form(() =>
    Response.json({ meta: { id: 'ins-1' }, warnings: [{ code: 'no-room-now', message: 'the instance would wait' }] }),
  );
  await screen.findByRole('radio', { name: 'NVIDIA L4' });
  await screen.findByRole('option', { name: 'debian' });
  await userEvent.selectOptions(screen.getByLabelText(/^Image or app/), 'image:debian');
  await named('web-1');
  expect(await screen.findByText(/There is no free capacity for this instance now/)).toBeVisible();
  expect(screen.getByRole('button', { name: /^Add to the queue/ })).toBeEnabled();
});

test('the place that it would have in the queue is shown, with the basis of the estimate', async () => {
  form(() =>
    Response.json({
      meta: { id: 'ins-1' },
      warnings: [{ code: 'no-room-now', message: 'the instance would wait' }],
      queue: { position: 3, length: 3, samples: 7, usualSeconds: 1200, expectedAt: new Date().toISOString() },
    }),
  );
  await screen.findByRole('radio', { name: 'NVIDIA L4' });
  await screen.findByRole('option', { name: 'debian' });
  await userEvent.selectOptions(screen.getByLabelText(/^Image or app/), 'image:debian');
  await named('web-1');
  expect(
    await screen.findByText(/position 3 of 3\..*Similar instances waited 20 minutes \(median of 7\)/s),
  ).toBeVisible();
});

/** named types a name in place of the suggested one. */
async function named(name: string) {
  await userEvent.clear(screen.getByLabelText(/^Name/));
  await userEvent.type(screen.getByLabelText(/^Name/), name);
}

/** sentAs fills in the form's required fields and creates the instance, and returns what was sent last. */
async function sentAs(fill: () => Promise<void>): Promise<Schemas['InstanceSpec']> {
  const bodies: Schemas['Instance'][] = [];
  form((query, body) => {
    if (!query) bodies.push(body as Schemas['Instance']); // it is no dry run
    return undefined;
  });
  await screen.findByRole('radio', { name: 'NVIDIA L4' }); // the project is loaded, which images depend on
  await screen.findByRole('option', { name: 'debian' });
  await userEvent.selectOptions(screen.getByLabelText(/^Image or app/), 'image:debian');
  await named('web-1');
  await fill();
  await userEvent.click(screen.getByRole('button', { name: /^Create/ })); // warns if nobody can sign in
  const shut = screen.queryByRole('button', { name: 'Create without access' });
  if (shut) await userEvent.click(shut);
  await waitFor(() => expect(bodies).not.toHaveLength(0));
  return bodies.at(-1)!.spec;
}

test('the machine is chosen under Advanced: CPUs if the flavor permits it, huge pages, firmware', async () => {
  const spec = await sentAs(async () => {
    await userEvent.click(screen.getByRole('button', { name: 'Advanced' }));
    expect(within(screen.getByLabelText('CPUs')).getAllByRole('option')).toHaveLength(1);
    expect(screen.getByText(/The flavor has shared CPUs/)).toBeVisible();
    await userEvent.selectOptions(screen.getByLabelText(/^Flavor/), 'large');
    await userEvent.selectOptions(screen.getByLabelText('CPUs'), 'Dedicated CPUs');
    await userEvent.selectOptions(screen.getByLabelText('Huge pages'), '1 GiB');
    expect(screen.queryByLabelText('Secure Boot')).toBeNull();
    await userEvent.selectOptions(screen.getByLabelText('Firmware'), 'UEFI');
    await userEvent.click(screen.getByLabelText('Secure Boot'));
    await userEvent.click(screen.getByLabelText('TPM 2.0'));
  });
  expect(spec).toMatchObject({
    flavor: 'large',
    cpuPolicy: 'dedicated',
    hugePages: '1Gi',
    firmware: 'uefi',
    secureBoot: true,
    tpm: true,
  });
});

test('a smaller flavor that does not permit dedicated CPUs ends their choice', async () => {
  const spec = await sentAs(async () => {
    await userEvent.click(screen.getByRole('button', { name: 'Advanced' }));
    await userEvent.selectOptions(screen.getByLabelText(/^Flavor/), 'large');
    await userEvent.selectOptions(screen.getByLabelText('CPUs'), 'Dedicated CPUs');
    await userEvent.selectOptions(screen.getByLabelText(/^Flavor/), 'small');
  });
  expect(spec).not.toHaveProperty('cpuPolicy');
});

test('huge pages are not offered with a virtual GPU', async () => {
  form(() => problem('meta.name', 'no'));
  await userEvent.click(await screen.findByRole('button', { name: 'Advanced' }));
  expect(screen.getByLabelText('Huge pages')).toBeVisible();
  await userEvent.click(await screen.findByRole('radio', { name: 'NVIDIA L4' }));
  expect(screen.queryByLabelText('Huge pages')).toBeNull();
});

test('a deadline for the queue is a local time, which is sent in UTC', async () => {
  const spec = await sentAs(async () => {
    expect(screen.queryByLabelText(/^Wait until/)).toBeNull();
    await userEvent.selectOptions(screen.getByLabelText('If no node has room'), 'Wait in the queue until a time');
    fireEvent.change(screen.getByLabelText(/^Wait until/), { target: { value: '2030-01-02T03:04' } });
  });
  expect(spec.queueUntil).toBe(new Date(2030, 0, 2, 3, 4).toISOString().replace('.000Z', 'Z'));
});

test('a deadline that is wanted has to be given', async () => {
  const asked = form(() => undefined);
  await screen.findByRole('radio', { name: 'NVIDIA L4' }); // the project is loaded, which images depend on
  await screen.findByRole('option', { name: 'debian' });
  await userEvent.selectOptions(screen.getByLabelText(/^Image or app/), 'image:debian');
  await named('web-1');
  await userEvent.selectOptions(screen.getByLabelText('If no node has room'), 'Wait in the queue until a time');
  await userEvent.click(screen.getByRole('button', { name: /^Create/ }));
  expect(screen.getByLabelText(/^Wait until/)).toBeInvalid();
  expect(asked.filter((a) => a === 'instances')).toEqual([]);
});

test('a system is installed from media onto a root disk of a given size', async () => {
  const spec = await sentAs(async () => {
    expect(screen.queryByRole('option', { name: 'windows', selected: true })).toBeNull();
    await userEvent.selectOptions(screen.getByLabelText(/^Image or app/), 'medium:windows');
    await userEvent.selectOptions(screen.getByLabelText(/^Second medium/), 'virtio-win');
    await userEvent.type(screen.getByLabelText(/^Size of the root disk/), '64');
  });
  expect(spec).toMatchObject({ media: ['windows', 'virtio-win'], rootBytes: 64 * gib });
  expect(spec).not.toHaveProperty('image');
});

test('an image and a name are chosen, and the GPU of the link', async () => {
  form(() => undefined, encodeURIComponent('gpu:default:NVIDIA L4'));
  expect(await screen.findByRole('radio', { name: 'NVIDIA L4' })).toBeChecked();
  expect(screen.getByRole('radio', { name: '50% of a GPU' })).toBeChecked();
  expect(screen.getByLabelText(/^Image or app/)).toHaveValue('image:debian');
  expect(screen.getByLabelText(/^Name/)).toHaveDisplayValue(/^debian-[a-z2-9]{4}$/);
});

test('without a key the server decides whether anybody can sign in', async () => {
  const warns = (...codes: string[]) =>
    Response.json({ meta: { id: 'ins-1' }, warnings: codes.map((code) => ({ code, message: code })) });
  const warned = form(() => warns('no-ssh-key'));
  await screen.findByDisplayValue(/^debian-/);
  await waitFor(() => expect(warned).toContain('instances?dryRun=all'));
  await userEvent.click(screen.getByRole('button', { name: 'Create' }));
  expect(await screen.findByText('Nobody can sign in to this instance')).toBeVisible();
  expect(warned).not.toContain('instances');
  cleanup();
  const through = form(() => warns());
  await screen.findByDisplayValue(/^debian-/);
  await waitFor(() => expect(through).toContain('instances?dryRun=all'));
  await userEvent.click(screen.getByRole('button', { name: 'Create' }));
  await waitFor(() => expect(through).toContain('instances'));
  expect(screen.queryByText('Nobody can sign in to this instance')).toBeNull();
});
