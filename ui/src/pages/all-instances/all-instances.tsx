// The instances of all tenants, for operators: where they run, and actions on them. Links from other pages set a
// node or a GPU in the address.
import { ServerIcon } from '@patternfly/react-icons';
import { useCallback, useMemo, useState } from 'react';
import { Link } from 'wouter';
import type { Instance } from '../../api/client';
import { useOrganizationNames } from '../../api/cluster';
import { collections } from '../../api/collection';
import { useGpus, useNodes } from '../../api/queries';
import type { Session } from '../../api/session';
import { Move } from '../../forms/move';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import type { Facet } from '../../lib/narrow';
import { noteOf, phaseKey, phaseOf, phases } from '../../lib/phase';
import { nameIn, type Named } from '../../lib/named';
import { useStates } from '../../parts/facets';
import { useInstanceActions } from '../../parts/instance-actions';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { PhaseLabel } from '../../parts/phase';
import { useProject } from '../../parts/project';
import { Time } from '../../parts/time';
import { Note } from '../../parts/told';

/** A running instance with a virtual GPU cannot be migrated. */
const migratable = (i: Instance) =>
  ['Stopped', 'Failed'].includes(phaseOf(i)) || (phaseOf(i) === 'Running' && !i.spec.vgpu);
const options = (items: Named) => (items ?? []).map((o) => ({ value: o.meta.id ?? '', label: o.meta.name }));

/** useFacets returns the filters in the address; choosing an organization clears a project of another. */
function useFacets(organizations: Named, nodes: Named, gpus: Named): Facet[] {
  const { t } = useText();
  const { projects } = useProject();
  const states = useStates(phases, (p) => t(phaseKey(p)));
  return [
    ...states,
    {
      id: 'organization',
      label: t('nav.organization'),
      any: t('all.anyOrganization'),
      options: options(organizations),
      clears: { project: '' },
    },
    { id: 'project', label: t('common.project'), any: t('app.allProjects'), options: options(projects) },
    { id: 'node', label: t('one.node'), any: t('all.anyNode'), options: options(nodes) },
    { id: 'gpu', label: t('pool.card'), any: t('all.anyCard'), options: options(gpus) },
  ];
}

export function AllInstances({ session }: { session: Session }) {
  const { t, count, language } = useText();
  const { projects } = useProject();
  const nodes = useNodes({ limit: 1000 });
  const gpus = useGpus();
  const organizations = useOrganizationNames(true);
  const list = useListing(collections.instances, {
    facets: useFacets(organizations.data?.items, nodes.data?.items, gpus.data?.items),
  });
  const [moving, move] = useState<Instance | null>(null);
  const { bulk, actions: common, dialog } = useInstanceActions(session);
  const actions = useCallback(
    (i: Instance) => [migratable(i) && { text: t('all.move'), run: () => move(i) }, ...common(i)],
    [common, t],
  );
  // Of 500 rows only those that change are rendered again.
  const columns = useMemo(
    (): Column<Instance>[] => [
      {
        id: 'name',
        sort: 'name',
        title: t('common.name'),
        share: 1.3,
        cell: (i) => <Link href={`/instances/${i.meta.id}`}>{i.meta.name}</Link>,
      },
      {
        id: 'state',
        sort: 'state',
        title: t('common.state'),
        value: (i) => phaseOf(i),
        share: 1.6,
        cell: (i) => (
          <div>
            <PhaseLabel instance={i} /> <Note of={noteOf(i)} />
          </div>
        ),
      },
      {
        id: 'whose',
        sort: 'organization',
        title: t('all.whose'),
        share: 1.3,
        cell: (i) => `${nameIn(organizations.data?.items, i.meta.organization)} / ${nameIn(projects, i.meta.project)}`,
      },
      {
        id: 'where',
        sort: 'assignment.node',
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
        id: 'size',
        sort: 'assignment.memoryBytes',
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
      {
        id: 'created',
        sort: 'createdAt',
        title: t('common.created'),
        share: 1.2,
        value: (i) => i.meta.createdAt,
        cell: (i) => <Time at={i.meta.createdAt} />,
      },
    ],
    [t, count, language, projects, organizations.data, nodes.data, gpus.data],
  );
  return (
    <PageBody title={t('all.title')}>
      <ObjectList
        name="all-instances"
        label={t('all.title')}
        columns={columns}
        list={list}
        keyOf={(i) => i.meta.id ?? i.meta.name}
        actions={actions}
        bulk={bulk}
        empty={<Empty title={t('inst.empty')} help={t('inst.emptyHelp')} icon={ServerIcon} />}
      />
      {moving && <Move of={moving} onClose={() => move(null)} />}
      {dialog}
    </PageBody>
  );
}
