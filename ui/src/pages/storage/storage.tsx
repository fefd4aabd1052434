// Storage: Ceph and its disks, and backup targets.
import { useText, type Key } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Views } from '../../parts/views';
import { Backups } from './backups';
import { Ceph } from './ceph';
import { Disks } from './disks';
import { Targets } from './targets';

const views: { tab: string; text: Key }[] = [
  { tab: '', text: 'sto.health' },
  { tab: 'backups', text: 'sto.backups' },
];

export function Storage({ tab }: { tab: string }) {
  const { t } = useText();
  return (
    <PageBody title={t('sto.title')}>
      <div className="basalt-stack">
        <Views
          label={t('sto.views')}
          views={views.map((v) => ({
            href: `/storage${v.tab && `/${v.tab}`}`,
            title: t(v.text),
            active: v.tab === tab,
          }))}
        />
        {tab === '' ? (
          <>
            <Ceph />
            <Disks />
          </>
        ) : (
          <>
            <Targets />
            <Backups />
          </>
        )}
      </div>
    </PageBody>
  );
}
