import { Button } from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import type { Instance } from '../api/client';
import { useInstances } from '../api/queries';
import { may, type Session } from '../api/session';
import { useText } from '../i18n';
import { formatBytes, formatPercent, formatTime } from '../lib/format';
import { noteOf } from '../lib/phase';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { PhaseLabel } from '../parts/phase';
import { useProject } from '../shell/project';

const perPage = 25;

export function Instances({ session }: { session: Session }) {
  const { t, count, language } = useText();
  const { project, projects } = useProject();
  const [, go] = useLocation();
  const pages = usePages();
  const [name, setName] = useState('');
  const query = useInstances({ project, name, limit: perPage, continue: pages.token });
  const create = may(session, 'member') && <Button onClick={() => go('/instances/new')}>{t('inst.create')}</Button>;
  const projectName = (id: string | undefined) => projects.find((p) => p.meta.id === id)?.meta.name ?? '';
  const columns: Column<Instance>[] = [
    { title: t('common.name'), cell: (i) => <Link href={`/instances/${i.meta.id}`}>{i.meta.name}</Link> },
    {
      title: t('common.state'),
      cell: (i) => (
        <div>
          <PhaseLabel instance={i} /> <span className="basalt-note">{noteOf(i)}</span>
        </div>
      ),
    },
    { title: t('inst.size'), cell: ({ assignment: a }) => (a?.vcpus ? `${count('inst.vcpus', a.vcpus)}, ${formatBytes(a.memoryBytes ?? 0, language)}` : '–') },
    {
      title: t('inst.vgpu'),
      cell: ({ spec: { vgpu: v } }) => (v ? `${t('inst.vram', { size: formatBytes(v.vramBytes, language) })}, ${v.sharePercent ? t('inst.share', { percent: formatPercent(v.sharePercent, language) }) : t('inst.bestEffort')}` : '–'),
    },
    { title: t('inst.addresses'), cell: ({ assignment: a }) => a?.ports?.map((p) => p.address4 || p.address6).join(', ') || '–' },
    ...(project ? [] : [{ title: t('common.project'), cell: (i: Instance) => projectName(i.meta.project) }]),
    { title: t('common.created'), cell: (i) => formatTime(i.meta.createdAt, language) },
  ];
  return (
    <PageBody title={t('inst.title')} actions={create}>
      <ObjectList
        label={t('inst.title')}
        columns={columns}
        query={query}
        keyOf={(i) => i.meta.id ?? i.meta.name}
        pages={pages}
        filter={{ name, set: (n) => (setName(n), pages.reset()) }}
        empty={<Empty title={t('inst.empty')} help={create ? t('inst.emptyHelp') : t('inst.emptyViewer')} icon={ServerIcon} action={create} />}
      />
    </PageBody>
  );
}
