import { ServerIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import { mostInstances, useInstances, useNodes } from '../../api/queries';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { nodeState, problems, type Node } from '../../lib/node';
import { Empty, ObjectList, usePages, type Column } from '../../parts/list';
import { ToneLabel, type Tone } from '../../parts/tone';
import { NodeActions } from './node-actions';

const tones: Partial<Record<ReturnType<typeof nodeState>, Tone>> = {
  Ready: 'good',
  Suspect: 'bad',
  Lost: 'bad',
  Drained: 'off',
};

export function NodeService() {
  const { t } = useText();
  const { language } = useText();
  const pages = usePages();
  const query = useNodes({ limit: 50, continue: pages.token });
  const instances = useInstances({ limit: mostInstances });
  const on = (n: Node) => instances.data?.items.filter((i) => i.assignment?.node === n.meta.id).length ?? 0;
  const columns: Column<Node>[] = [
    { title: t('common.name'), cell: (n) => <Link href={`/nodes/${n.meta.id}`}>{n.meta.name}</Link> },
    {
      title: t('common.state'),
      cell: (n) => (
        <div>
          <ToneLabel tone={tones[nodeState(n)] ?? 'busy'} text={t(`node.${nodeState(n)}`)} />{' '}
          {n.spec.unschedulable && <ToneLabel tone="off" text={t('mnt.closed')} />}{' '}
          <span className="basalt-note">{[n.assignment?.reason, ...problems(n)].filter(Boolean).join('; ')}</span>
        </div>
      ),
    },
    {
      title: t('inst.title'),
      cell: (n) =>
        instances.data ? (
          <Link
            href={`/all-instances/node/${n.meta.id}`}
            aria-label={t('mnt.instancesOn', { n: on(n), name: n.meta.name })}
          >
            {on(n)}
            {instances.data.continue && '+'}
          </Link>
        ) : (
          '…'
        ),
    },
    { title: t('mnt.votes'), cell: (n) => t(n.assignment?.voter ? 'op.yes' : 'op.no') },
    { title: t('node.seen'), cell: (n) => formatTime(n.status?.seenAt, language) || t('common.never') },
    { title: t('common.actions'), cell: (n) => <NodeActions node={n} instances={on(n)} /> },
  ];
  return (
    <>
      <p>{t('mnt.nodesHelp')}</p>
      <ObjectList
        label={t('mnt.nodes')}
        columns={columns}
        query={query}
        keyOf={(n) => n.meta.id ?? n.meta.name}
        pages={pages}
        empty={<Empty title={t('node.empty')} help={t('node.emptyHelp')} icon={ServerIcon} />}
      />
    </>
  );
}
