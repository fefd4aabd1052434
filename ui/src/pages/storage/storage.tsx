// Where data lies: Ceph and its disks, and where backups go.
import { Tab, Tabs, TabTitleText } from '@patternfly/react-core';
import { useText, type Key } from '../../i18n';
import { PageBody } from '../../parts/page';
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
        <Tabs activeKey={tab} component="nav" aria-label={t('sto.views')}>
          {views.map((v) => <Tab key={v.tab} eventKey={v.tab} href={`#/storage${v.tab && `/${v.tab}`}`} title={<TabTitleText>{t(v.text)}</TabTitleText>} />)}
        </Tabs>
        {tab === '' ? <><Ceph /><Disks /></> : <><Targets /><Backups /></>}
      </div>
    </PageBody>
  );
}
