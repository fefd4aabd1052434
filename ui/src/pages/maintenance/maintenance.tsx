// Maintenance of nodes: draining, returning to service, migrating instances, adding nodes.
import { useText, type Key } from '../../i18n';
import { PageBody } from '../../parts/page';
import { Views } from '../../parts/views';
import { Migrations } from './migrations';
import { NodeService } from './nodes';
import { Tokens } from './tokens';

const views: { tab: string; text: Key }[] = [
  { tab: '', text: 'mnt.nodes' },
  { tab: 'migrations', text: 'mnt.migrations' },
  { tab: 'tokens', text: 'mnt.tokens' },
];

export function Maintenance({ tab }: { tab: string }) {
  const { t } = useText();
  return (
    <PageBody title={t('mnt.title')}>
      <div className="basalt-stack">
        <Views
          label={t('mnt.views')}
          views={views.map((v) => ({
            href: `/maintenance${v.tab && `/${v.tab}`}`,
            title: t(v.text),
            active: v.tab === tab,
          }))}
        />
        {tab === '' && <NodeService />}
        {tab === 'migrations' && <Migrations />}
        {tab === 'tokens' && <Tokens />}
      </div>
    </PageBody>
  );
}
