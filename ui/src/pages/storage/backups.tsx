import { Title } from '@patternfly/react-core';
import { ArchiveIcon } from '@patternfly/react-icons';
import type { Schemas } from '../../api/client';
import { useBackupTargets, useVolumeNames } from '../../api/cluster';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { nameIn } from '../../lib/named';
import { formatBytes, formatPercent } from '../../lib/format';
import { Empty, ObjectList, useProjectListing, type Column } from '../../parts/list';
import { Note } from '../../parts/told';
import { ToneLabel, type Tone } from '../../parts/tone';
import { useProject } from '../../parts/project';
import { Time } from '../../parts/time';
import { collections } from '../../api/collection';

type Backup = Schemas['Backup'];

const tones: Record<string, Tone> = { Succeeded: 'good', Failed: 'bad' };

/** Backups lists the backups of all tenants, read-only: tenants create and restore their own. */
export function Backups() {
  const { t, language } = useText();
  const { projects } = useProject();
  const list = useProjectListing(collections.backups, { sort: '-createdAt' });
  const targets = useBackupTargets();
  const volumes = useVolumeNames();
  const columns: Column<Backup>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (b) => b.meta.name },
    {
      id: 'state',
      sort: 'state',
      title: t('common.state'),
      value: (b) => b.status?.phase || 'Pending',
      cell: ({ status: s, assignment: a }) => (
        <div>
          <ToneLabel tone={tones[s?.phase ?? ''] ?? 'busy'} text={t(`obk.${s?.phase || 'Pending'}`)} />{' '}
          {s?.lastError || a?.reason ? (
            <Note of={s?.lastError ? told(s.lastError, s.cause) : told(a?.reason, a?.cause)} />
          ) : (
            s?.phase === 'Running' &&
            s.totalBytes && (
              <span className="basalt-note">
                {formatPercent((100 * (s.progressBytes ?? 0)) / s.totalBytes, language)}
              </span>
            )
          )}
        </div>
      ),
    },
    {
      id: 'volume',
      sort: 'spec.volume',
      title: t('obk.volume'),
      cell: (b) => nameIn(volumes.data?.items, b.spec.volume),
    },
    { id: 'project', sort: 'project', title: t('common.project'), cell: (b) => nameIn(projects, b.meta.project) },
    {
      id: 'target',
      sort: 'spec.target',
      title: t('obk.target'),
      cell: (b) => nameIn(targets.data?.items, b.spec.target),
    },
    {
      id: 'stored',
      sort: 'status.addedBytes',
      title: t('obk.stored'),
      cell: ({ status: s }) =>
        s?.totalBytes
          ? t('obk.storedOf', {
              added: formatBytes(s.addedBytes ?? 0, language),
              all: formatBytes(s.totalBytes, language),
            })
          : '–',
    },
    {
      id: 'ended',
      sort: 'status.endedAt',
      title: t('obk.ended'),
      value: ({ status: s }) => s?.endedAt,
      cell: ({ status: s }) => <Time at={s?.endedAt} />,
    },
  ];
  return (
    <>
      <Title headingLevel="h2" size="lg">
        {t('sto.backups')}
      </Title>
      <ObjectList
        name="backups"
        label={t('sto.backups')}
        columns={columns}
        list={list}
        keyOf={(b) => b.meta.id ?? b.meta.name}
        empty={<Empty title={t('obk.empty')} help={t('obk.emptyHelp')} icon={ArchiveIcon} />}
      />
    </>
  );
}
