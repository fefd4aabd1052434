import { ServerIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import { mostInstances, useInstances } from '../../api/queries';
import { useText } from '../../i18n';
import { nodeState, problems, type Node } from '../../lib/node';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { ToneLabel, type Tone } from '../../parts/tone';
import { NodeActions, useNodeBulk } from './node-actions';
import { Time } from '../../parts/time';
import { collections } from '../../api/collection';

const tones: Partial<Record<ReturnType<typeof nodeState>, Tone>> = {
  Ready: 'good',
  Suspect: 'bad',
  Lost: 'bad',
  Drained: 'off',
};

export function NodeService() {
  const { t } = useText();
  const list = useListing(collections.nodes);
  const bulk = useNodeBulk();
  const instances = useInstances({ limit: mostInstances });
  const on = (n: Node) => instances.data?.items.filter((i) => i.assignment?.node === n.meta.id).length ?? 0;
  const columns: Column<Node>[] = [
    {
      id: 'name',
      sort: 'name',
      title: t('common.name'),
      cell: (n) => <Link href={`/nodes/${n.meta.id}`}>{n.meta.name}</Link>,
    },
    {
      id: 'state',
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
      id: 'title',
      title: t('inst.title'),
      cell: (n) =>
        instances.data ? (
          <Link
            href={`/all-instances?node=${n.meta.id}`}
            aria-label={t('mnt.instancesOn', { n: on(n), name: n.meta.name })}
          >
            {on(n)}
            {instances.data.continue && '+'}
          </Link>
        ) : (
          '…'
        ),
    },
    {
      id: 'votes',
      sort: 'assignment.voter',
      title: t('mnt.votes'),
      cell: (n) => t(n.assignment?.voter ? 'op.yes' : 'op.no'),
    },
    {
      id: 'seen',
      sort: 'status.seenAt',
      title: t('node.seen'),
      value: (n) => n.status?.seenAt,
      cell: (n) => <Time at={n.status?.seenAt} none={t('common.never')} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (n) => <NodeActions node={n} instances={on(n)} />,
    },
  ];
  return (
    <>
      <p>{t('mnt.nodesHelp')}</p>
      <ObjectList
        name="maintenance-nodes"
        label={t('mnt.nodes')}
        columns={columns}
        list={list}
        bulk={bulk}
        keyOf={(n) => n.meta.id ?? n.meta.name}
        empty={<Empty title={t('node.empty')} help={t('node.emptyHelp')} icon={ServerIcon} />}
      />
    </>
  );
}
