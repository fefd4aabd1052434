// What an operator does with nodes: taking one out of service and putting it
// back, moving what runs, letting another one in.
import { Tab, Tabs, TabTitleText } from '@patternfly/react-core';
import { useText, type Key } from '../../i18n';
import { PageBody } from '../../parts/page';
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
        <Tabs activeKey={tab} component="nav" aria-label={t('mnt.views')}>
          {views.map((v) => <Tab key={v.tab} eventKey={v.tab} href={`#/maintenance${v.tab && `/${v.tab}`}`} title={<TabTitleText>{t(v.text)}</TabTitleText>} />)}
        </Tabs>
        {tab === '' && <NodeService />}
        {tab === 'migrations' && <Migrations />}
        {tab === 'tokens' && <Tokens />}
      </div>
    </PageBody>
  );
}
