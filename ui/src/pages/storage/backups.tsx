import { Title } from '@patternfly/react-core';
import { ArchiveIcon } from '@patternfly/react-icons';
import type { Schemas } from '../../api/client';
import { useBackups, useBackupTargets, useVolumeNames } from '../../api/cluster';
import { useText } from '../../i18n';
import { formatBytes, formatPercent, formatTime } from '../../lib/format';
import { Empty, ObjectList, usePages, type Column } from '../../parts/list';
import { ToneLabel, type Tone } from '../../parts/tone';
import { useProject } from '../../parts/project';

type Backup = Schemas['Backup'];

const tones: Record<string, Tone> = { Succeeded: 'good', Failed: 'bad' };

/** Backups of all tenants, to look at: they make and restore their own. */
export function Backups() {
  const { t, language } = useText();
  const { project, projects } = useProject();
  const pages = usePages();
  const query = useBackups({ project, limit: 25, continue: pages.token });
  const targets = useBackupTargets();
  const volumes = useVolumeNames();
  const nameIn = (items: { meta: { id?: string; name: string } }[] | undefined, ref: string | undefined) =>
    items?.find((o) => o.meta.id === ref)?.meta.name ?? ref ?? '–';
  const columns: Column<Backup>[] = [
    { title: t('common.name'), cell: (b) => b.meta.name },
    {
      title: t('common.state'),
      cell: ({ status: s, assignment: a }) => (
        <div>
          <ToneLabel tone={tones[s?.phase ?? ''] ?? 'busy'} text={t(`obk.${s?.phase || 'Pending'}`)} />{' '}
          <span className="basalt-note">
            {s?.lastError ||
              a?.reason ||
              (s?.phase === 'Running' && s.totalBytes
                ? formatPercent((100 * (s.progressBytes ?? 0)) / s.totalBytes, language)
                : '')}
          </span>
        </div>
      ),
    },
    { title: t('obk.volume'), cell: (b) => nameIn(volumes.data?.items, b.spec.volume) },
    { title: t('common.project'), cell: (b) => nameIn(projects, b.meta.project) },
    { title: t('obk.target'), cell: (b) => nameIn(targets.data?.items, b.spec.target) },
    {
      title: t('obk.stored'),
      cell: ({ status: s }) =>
        s?.totalBytes
          ? t('obk.storedOf', {
              added: formatBytes(s.addedBytes ?? 0, language),
              all: formatBytes(s.totalBytes, language),
            })
          : '–',
    },
    { title: t('obk.ended'), cell: ({ status: s }) => formatTime(s?.endedAt, language) || '–' },
  ];
  return (
    <>
      <Title headingLevel="h2" size="lg">
        {t('sto.backups')}
      </Title>
      <ObjectList
        label={t('sto.backups')}
        columns={columns}
        query={query}
        keyOf={(b) => b.meta.id ?? b.meta.name}
        pages={pages}
        empty={<Empty title={t('obk.empty')} help={t('obk.emptyHelp')} icon={ArchiveIcon} />}
      />
    </>
  );
}
