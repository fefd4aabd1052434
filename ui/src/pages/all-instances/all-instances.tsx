// Every tenant's instances, for operators: who has what where, and what to do
// with it. From other pages one comes with a node or a card in the address.
import { Button, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Link } from 'wouter';
import { api, ok, type Instance } from '../../api/client';
import { useInstancesBy, useOrganizationNames } from '../../api/cluster';
import { useGpus, useNodes } from '../../api/queries';
import { useText } from '../../i18n';
import { formatBytes, formatTime } from '../../lib/format';
import { noteOf, phaseKey, phaseOf, type Phase } from '../../lib/phase';
import { Confirm } from '../../parts/confirm';
import { ErrorAlert } from '../../parts/error';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { PhaseLabel } from '../../parts/phase';
import { useProject } from '../../parts/project';
import { Move } from './move';

const phases: Phase[] = [
  'Pending',
  'Creating',
  'Starting',
  'Running',
  'Stopping',
  'Stopped',
  'Deleting',
  'Failed',
  'NodeLost',
  'Moving',
];

type Named = { meta: { id?: string; name: string } }[] | undefined;

const nameIn = (items: Named, ref: string | undefined) => items?.find((o) => o.meta.id === ref)?.meta.name ?? ref ?? '';
const options = (items: Named) => (items ?? []).map((o) => ({ value: o.meta.id ?? '', label: o.meta.name }));

interface Choice {
  id: string;
  label: string;
  value: string;
  all: string;
  options: { value: string; label: string }[];
  set: (v: string) => void;
}

const Filter = ({ id, label, value, all, options, set }: Choice) => (
  <FormSelect id={id} aria-label={label} value={value} onChange={(_, v) => set(v)}>
    <FormSelectOption value="" label={all} />
    {options.map((o) => (
      <FormSelectOption key={o.value} {...o} />
    ))}
  </FormSelect>
);

export function AllInstances({ tab, id }: { tab: string; id: string }) {
  const { t, count, language } = useText();
  const { projects } = useProject();
  const [by, setBy] = useState({
    organization: '',
    project: '',
    node: tab === 'node' ? id : '',
    gpu: tab === 'gpu' ? id : '',
    phase: '',
  });
  const listing = useListing(Object.values(by).join());
  const [moving, move] = useState<Instance | null>(null);
  const [stopping, stop] = useState<Instance | null>(null);
  const nodes = useNodes({ limit: 1000 });
  const gpus = useGpus();
  const organizations = useOrganizationNames(true);
  const query = useInstancesBy({ ...by, ...listing.query });
  const set = (field: keyof typeof by) => (v: string) =>
    setBy((b) => ({ ...b, [field]: v, ...(field === 'organization' && { project: '' }) }));
  const power = useMutation({
    mutationFn: ({ i, on }: { i: Instance; on: boolean }) => {
      const params = { params: { path: { id: i.meta.id ?? '' } } };
      return ok(on ? api.POST('/v1/instances/{id}/start', params) : api.POST('/v1/instances/{id}/stop', params));
    },
    onSuccess: () => stop(null),
  });
  const { isPending: turning, mutate: turn, reset } = power;
  // Of 500 rows only those that change are drawn anew.
  const columns = useMemo(
    (): Column<Instance>[] => [
      { title: t('common.name'), share: 1.3, cell: (i) => <Link href={`/instances/${i.meta.id}`}>{i.meta.name}</Link> },
      {
        title: t('common.state'),
        share: 1.6,
        cell: (i) => (
          <div>
            <PhaseLabel instance={i} /> <span className="basalt-note">{noteOf(i)}</span>
          </div>
        ),
      },
      {
        title: t('all.whose'),
        share: 1.3,
        cell: (i) => `${nameIn(organizations.data?.items, i.meta.organization)} / ${nameIn(projects, i.meta.project)}`,
      },
      {
        title: t('all.where'),
        cell: ({ assignment: a }) =>
          a?.node ? (
            <>
              <Link href={`/nodes/${a.node}`}>{nameIn(nodes.data?.items, a.node)}</Link>
              {a.gpu && (
                <>
                  <br />
                  <span className="basalt-note">{nameIn(gpus.data?.items, a.gpu)}</span>
                </>
              )}
            </>
          ) : (
            '–'
          ),
      },
      {
        title: t('inst.size'),
        cell: ({ assignment: a }) =>
          a?.vcpus
            ? [
                `${count('inst.vcpus', a.vcpus)}`,
                formatBytes(a.memoryBytes ?? 0, language),
                a.vgpuVramBytes && t('inst.vram', { size: formatBytes(a.vgpuVramBytes, language) }),
              ]
                .filter(Boolean)
                .join(', ')
            : '–',
      },
      { title: t('common.created'), share: 1.2, cell: (i) => formatTime(i.meta.createdAt, language) },
      {
        title: t('common.actions'),
        cell: (i) => {
          const phase = phaseOf(i);
          if (phase === 'Deleting') return '–';
          return (
            <div className="basalt-actions">
              {phase === 'Running' && !i.spec.vgpu && (
                <Button variant="link" isInline aria-label={`${t('all.move')}: ${i.meta.name}`} onClick={() => move(i)}>
                  {t('all.move')}
                </Button>
              )}
              {i.spec.power === 'Stopped' ? (
                <Button
                  variant="link"
                  isInline
                  isDisabled={turning}
                  aria-label={`${t('one.start')}: ${i.meta.name}`}
                  onClick={() => turn({ i, on: true })}
                >
                  {t('one.start')}
                </Button>
              ) : (
                <Button
                  variant="link"
                  isInline
                  aria-label={`${t('one.stop')}: ${i.meta.name}`}
                  onClick={() => (reset(), stop(i))}
                >
                  {t('one.stop')}
                </Button>
              )}
            </div>
          );
        },
      },
    ],
    [t, count, language, projects, organizations.data, nodes.data, gpus.data, turning, turn, reset],
  );
  const filtered = Object.values(by).some(Boolean);
  return (
    <PageBody title={t('all.title')}>
      <div className="basalt-stack">
        <div className="basalt-filters" role="group" aria-label={t('all.filters')}>
          <Filter
            id="by-organization"
            label={t('nav.organization')}
            all={t('all.anyOrganization')}
            value={by.organization}
            options={options(organizations.data?.items)}
            set={set('organization')}
          />
          <Filter
            id="by-project"
            label={t('common.project')}
            all={t('app.allProjects')}
            value={by.project}
            options={options(projects.filter((p) => !by.organization || p.meta.organization === by.organization))}
            set={set('project')}
          />
          <Filter
            id="by-node"
            label={t('one.node')}
            all={t('all.anyNode')}
            value={by.node}
            options={options(nodes.data?.items)}
            set={set('node')}
          />
          <Filter
            id="by-gpu"
            label={t('pool.card')}
            all={t('all.anyCard')}
            value={by.gpu}
            options={options(gpus.data?.items)}
            set={set('gpu')}
          />
          <Filter
            id="by-phase"
            label={t('common.state')}
            all={t('all.anyState')}
            value={by.phase}
            options={phases.map((p) => ({ value: p, label: t(phaseKey(p)) }))}
            set={set('phase')}
          />
        </div>
        {stopping === null && <ErrorAlert error={power.error} onClose={power.reset} />}
        <ObjectList
          label={t('all.title')}
          columns={columns}
          query={query}
          keyOf={(i) => i.meta.id ?? i.meta.name}
          pages={listing.pages}
          filter={listing.filter}
          empty={
            <Empty
              title={filtered ? t('all.noMatch') : t('inst.empty')}
              help={filtered ? t('all.noMatchHelp') : t('inst.emptyHelp')}
              icon={ServerIcon}
            />
          }
        />
      </div>
      {moving && <Move instance={moving} nodes={nodes.data?.items ?? []} onClose={() => move(null)} />}
      {stopping && (
        <Confirm
          title={t('one.stopTitle', { name: stopping.meta.name })}
          help={t('one.stopHelp')}
          action={t('one.stop')}
          busy={power.isPending}
          error={power.error}
          onConfirm={() => power.mutate({ i: stopping, on: false })}
          onClose={() => stop(null)}
        />
      )}
    </PageBody>
  );
}
