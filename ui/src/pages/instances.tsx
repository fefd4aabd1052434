import { Button } from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import type { Instance } from '../api/client';
import { may, type Session } from '../api/session';
import { useText } from '../i18n';
import { formatBytes, formatPercent } from '../lib/format';
import { noteOf, phaseKey, phaseOf, phases } from '../lib/phase';
import { Empty, ObjectList, useProjectListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { PhaseLabel } from '../parts/phase';
import { useProject } from '../parts/project';
import { Time } from '../parts/time';
import { Note } from '../parts/told';
import { collections } from '../api/collection';
import { useStates } from '../parts/facets';
import { useInstanceActions } from '../parts/instance-actions';

export function Instances({ session }: { session: Session }) {
  const { t, count, language } = useText();
  const { project, projects } = useProject();
  const [, go] = useLocation();
  const list = useProjectListing(collections.instances, { facets: useStates(phases, (p) => t(phaseKey(p))) });
  const { actions, bulk, dialog } = useInstanceActions(session);
  const create = may(session, 'member') && <Button onClick={() => go('/instances/new')}>{t('inst.create')}</Button>;
  // Of 500 rows only those that change are rendered again.
  const columns = useMemo(
    (): Column<Instance>[] => [
      {
        id: 'name',
        sort: 'name',
        title: t('common.name'),
        cell: (i) => <Link href={`/instances/${i.meta.id}`}>{i.meta.name}</Link>,
      },
      {
        id: 'state',
        sort: 'state',
        title: t('common.state'),
        value: (i) => phaseOf(i),
        share: 2,
        cell: (i) => (
          <div>
            <PhaseLabel instance={i} /> <Note of={noteOf(i)} />
          </div>
        ),
      },
      {
        id: 'size',
        sort: 'assignment.memoryBytes',
        title: t('inst.size'),
        cell: ({ assignment: a }) =>
          a?.vcpus ? `${count('inst.vcpus', a.vcpus)}, ${formatBytes(a.memoryBytes ?? 0, language)}` : '–',
      },
      {
        id: 'vgpu',
        sort: 'assignment.vgpuVramBytes',
        title: t('inst.vgpu'),
        share: 1.3,
        cell: ({ spec: { vgpu: v } }) =>
          v
            ? `${t('inst.vram', { size: formatBytes(v.vramBytes, language) })}, ${v.sharePercent ? t('inst.share', { percent: formatPercent(v.sharePercent, language) }) : t('inst.bestEffort')}${v.tier ? `, ${v.tier}` : ''}`
            : '–',
      },
      {
        id: 'addresses',
        title: t('inst.addresses'),
        cell: ({ assignment: a }) => a?.ports?.map((p) => p.address4 || p.address6).join(', ') || '–',
      },
      ...(project
        ? []
        : [
            {
              id: 'project',
              sort: 'project',
              title: t('common.project'),
              cell: (i: Instance) => projects.find((p) => p.meta.id === i.meta.project)?.meta.name ?? '',
            },
          ]),
      {
        id: 'created',
        sort: 'createdAt',
        title: t('common.created'),
        share: 1.3,
        value: (i) => i.meta.createdAt,
        cell: (i) => <Time at={i.meta.createdAt} />,
      },
    ],
    [t, count, language, project, projects],
  );
  return (
    <PageBody title={t('inst.title')} actions={create}>
      <ObjectList
        name="instances"
        label={t('inst.title')}
        columns={columns}
        list={list}
        actions={actions}
        bulk={bulk}
        keyOf={(i) => i.meta.id ?? i.meta.name}
        empty={
          <Empty
            title={t('inst.empty')}
            help={create ? t('inst.emptyHelp') : t('inst.emptyViewer')}
            icon={ServerIcon}
            action={create}
          />
        }
      />
      {dialog}
    </PageBody>
  );
}
