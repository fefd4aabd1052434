import { Button } from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { useMemo } from 'react';
import { Link, useLocation } from 'wouter';
import type { Instance } from '../api/client';
import { useInstances } from '../api/queries';
import { may, type Session } from '../api/session';
import { useText } from '../i18n';
import { formatBytes, formatPercent, formatTime } from '../lib/format';
import { noteOf } from '../lib/phase';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { PhaseLabel } from '../parts/phase';
import { useProject } from '../parts/project';

export function Instances({ session }: { session: Session }) {
  const { t, count, language } = useText();
  const { project, projects } = useProject();
  const [, go] = useLocation();
  const listing = useListing(project);
  const query = useInstances({ project, ...listing.query });
  const create = may(session, 'member') && <Button onClick={() => go('/instances/new')}>{t('inst.create')}</Button>;
  // Of 500 rows only those that change are drawn anew.
  const columns = useMemo(
    (): Column<Instance>[] => [
      { title: t('common.name'), cell: (i) => <Link href={`/instances/${i.meta.id}`}>{i.meta.name}</Link> },
      {
        title: t('common.state'),
        share: 2,
        cell: (i) => (
          <div>
            <PhaseLabel instance={i} /> <span className="basalt-note">{noteOf(i)}</span>
          </div>
        ),
      },
      {
        title: t('inst.size'),
        cell: ({ assignment: a }) =>
          a?.vcpus ? `${count('inst.vcpus', a.vcpus)}, ${formatBytes(a.memoryBytes ?? 0, language)}` : '–',
      },
      {
        title: t('inst.vgpu'),
        share: 1.3,
        cell: ({ spec: { vgpu: v } }) =>
          v
            ? `${t('inst.vram', { size: formatBytes(v.vramBytes, language) })}, ${v.sharePercent ? t('inst.share', { percent: formatPercent(v.sharePercent, language) }) : t('inst.bestEffort')}${v.tier ? `, ${v.tier}` : ''}`
            : '–',
      },
      {
        title: t('inst.addresses'),
        cell: ({ assignment: a }) => a?.ports?.map((p) => p.address4 || p.address6).join(', ') || '–',
      },
      ...(project
        ? []
        : [
            {
              title: t('common.project'),
              cell: (i: Instance) => projects.find((p) => p.meta.id === i.meta.project)?.meta.name ?? '',
            },
          ]),
      { title: t('common.created'), share: 1.3, cell: (i) => formatTime(i.meta.createdAt, language) },
    ],
    [t, count, language, project, projects],
  );
  return (
    <PageBody title={t('inst.title')} actions={create}>
      <ObjectList
        label={t('inst.title')}
        columns={columns}
        query={query}
        keyOf={(i) => i.meta.id ?? i.meta.name}
        pages={listing.pages}
        filter={listing.filter}
        empty={
          <Empty
            title={t('inst.empty')}
            help={create ? t('inst.emptyHelp') : t('inst.emptyViewer')}
            icon={ServerIcon}
            action={create}
          />
        }
      />
    </PageBody>
  );
}
