// Images, apps and flavors, each at its own address. Tenants see what they may use; operators manage them.
import type { Session } from '../../api/session';
import { useText, type Key } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Views } from '../../parts/views';
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
        <Views
          label={t('cat.views')}
          views={views.map((v) => ({
            href: `/images${v.tab && `/${v.tab}`}`,
            title: t(v.text),
            active: v.tab === tab,
          }))}
        />
        {tab === '' && <ImageList session={session} />}
        {tab === 'apps' && <Apps session={session} />}
        {tab === 'flavors' && <Flavors session={session} />}
      </div>
    </PageBody>
  );
}
