// What machines are made from: images, apps and flavors, each at an address of
// its own. Tenants see what they may use; operators keep it.
import { Tab, Tabs, TabTitleText } from '@patternfly/react-core';
import type { Session } from '../../api/session';
import { useText, type Key } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Apps } from './apps';
import { Flavors } from './flavors';
import { ImageList } from './image-list';

const views: { tab: string; text: Key }[] = [
  { tab: '', text: 'img.title' },
  { tab: 'apps', text: 'cat.listTitle' },
  { tab: 'flavors', text: 'flv.title' },
];

export function Images({ session, tab }: { session: Session; tab: string }) {
  const { t } = useText();
  return (
    <PageBody title={t('cat.title')}>
      <div className="basalt-stack">
        <Tabs activeKey={tab} component="nav" aria-label={t('cat.views')}>
          {views.map((v) => <Tab key={v.tab} eventKey={v.tab} href={`#/images${v.tab && `/${v.tab}`}`} title={<TabTitleText>{t(v.text)}</TabTitleText>} />)}
        </Tabs>
        {tab === '' && <ImageList session={session} />}
        {tab === 'apps' && <Apps session={session} />}
        {tab === 'flavors' && <Flavors session={session} />}
      </div>
    </PageBody>
  );
}
