// The operator's nodes, and GPUs with their tenants.
import { Label, Title } from '@patternfly/react-core';
import {
  CheckCircleIcon,
  ExclamationCircleIcon,
  InProgressIcon,
  MicrochipIcon,
  ServerIcon,
} from '@patternfly/react-icons';
import { Link } from 'wouter';
import { mostInstances, useGpus, useInstances, usePools } from '../api/queries';
import { useText } from '../i18n';
import { formatBytes } from '../lib/format';
import { nodeState, problems, tenantsOf, type Node } from '../lib/node';
import { ErrorAlert } from '../parts/error';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { pools } from '../lib/pool';
import { GpuMap } from './dashboard/gpu-map';
import { GpuCard } from './gpu-card';
import { useNodeBulk } from './maintenance/node-actions';
import { Time } from '../parts/time';
import { collections } from '../api/collection';

function StateLabel({ node }: { node: Node }) {
  const { t } = useText();
  const state = nodeState(node);
  const text = t(`node.${state}`);
  if (state === 'Ready')
    return (
      <Label color="green" icon={<CheckCircleIcon />}>
        {text}
      </Label>
    );
  return state === 'Lost' || state === 'Suspect' ? (
    <Label color="red" icon={<ExclamationCircleIcon />}>
      {text}
    </Label>
  ) : (
    <Label color="blue" icon={<InProgressIcon />}>
      {text}
    </Label>
  );
}

/** mostCards is the number of GPUs up to which each has a card of its own: each reads its tenants every 5 s. */
const mostCards = 8;

function Cards({ nodes }: { nodes: Node[] }) {
  const { t } = useText();
  const [objects, gpus, instances] = [usePools(), useGpus(), useInstances({ limit: mostInstances })];
  const items = gpus.data?.items ?? [];
  const many = items.length > mostCards;
  return (
    <div className="basalt-stack">
      {!many && (
        <Title headingLevel="h2" size="lg">
          {t('gpu.title')}
        </Title>
      )}
      <ErrorAlert error={gpus.error ?? instances.error} />
      {instances.data?.continue && <p className="basalt-note">{t('gpu.more', { n: mostInstances })}</p>}
      {gpus.data && items.length === 0 && <Empty title={t('gpu.none')} help={t('gpu.noneHelp')} icon={MicrochipIcon} />}
      {many ? (
        <GpuMap
          nodes={nodes}
          cards={pools(objects.data?.items ?? [], items, instances.data?.items ?? []).flatMap((p) => p.cards)}
          error={objects.error}
        />
      ) : (
        <div className="basalt-columns">
          {items.map((g) => (
            <GpuCard
              key={g.meta.id}
              gpu={g}
              node={nodes.find((n) => n.meta.id === g.status?.node)}
              tenants={tenantsOf(g, instances.data?.items ?? [])}
            />
          ))}
        </div>
      )}
    </div>
  );
}

export function Nodes() {
  const { t, count, language } = useText();
  const list = useListing(collections.nodes);
  const bulk = useNodeBulk();
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
      value: (n) => nodeState(n),
      cell: (n) => (
        <div>
          <StateLabel node={n} />{' '}
          <span className="basalt-note">{[n.assignment?.reason, ...problems(n)].filter(Boolean).join('; ')}</span>
        </div>
      ),
    },
    {
      id: 'size',
      sort: 'status.vcpus',
      title: t('inst.size'),
      cell: ({ status: s }) =>
        s?.vcpus ? `${count('inst.vcpus', s.vcpus)}, ${formatBytes(s.memoryBytes ?? 0, language)}` : '–',
    },
    {
      id: 'storage',
      sort: 'status.storageFreeBytes',
      title: t('node.storage'),
      cell: ({ status: s }) =>
        s?.storageBytes
          ? t('node.free', {
              free: formatBytes(s.storageFreeBytes ?? 0, language),
              all: formatBytes(s.storageBytes, language),
            })
          : '–',
    },
    {
      id: 'version',
      sort: 'status.version',
      title: t('node.version'),
      cell: ({ status: s }) => [s?.version, s?.accelerator].filter(Boolean).join(', ') || '–',
    },
    {
      id: 'seen',
      sort: 'status.seenAt',
      title: t('node.seen'),
      value: ({ status: s }) => s?.seenAt,
      cell: ({ status: s }) => <Time at={s?.seenAt} none={t('common.never')} />,
    },
  ];
  return (
    <PageBody title={t('node.title')}>
      <div className="basalt-stack">
        <ObjectList
          name="nodes"
          label={t('node.title')}
          columns={columns}
          list={list}
          bulk={bulk}
          keyOf={(n) => n.meta.id ?? n.meta.name}
          empty={<Empty title={t('node.empty')} help={t('node.emptyHelp')} icon={ServerIcon} />}
        />
        <Cards nodes={list.query.data?.items ?? []} />
      </div>
    </PageBody>
  );
}
