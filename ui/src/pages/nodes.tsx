// The operator's machines: nodes, and cards with the tenants on each.
import { Label, Title } from '@patternfly/react-core';
import {
  CheckCircleIcon,
  ExclamationCircleIcon,
  InProgressIcon,
  MicrochipIcon,
  ServerIcon,
} from '@patternfly/react-icons';
import { Link } from 'wouter';
import { mostInstances, useGpus, useInstances, useNodes } from '../api/queries';
import { useText } from '../i18n';
import { formatBytes, formatTime } from '../lib/format';
import { nodeState, problems, tenantsOf, type Node } from '../lib/node';
import { ErrorAlert } from '../parts/error';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { GpuCard } from './gpu-card';

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

function Cards({ nodes }: { nodes: Node[] }) {
  const { t } = useText();
  const gpus = useGpus();
  const instances = useInstances({ limit: mostInstances });
  const items = gpus.data?.items ?? [];
  return (
    <div className="basalt-stack">
      <Title headingLevel="h2" size="lg">
        {t('gpu.title')}
      </Title>
      <ErrorAlert error={gpus.error ?? instances.error} />
      {instances.data?.continue && <p className="basalt-note">{t('gpu.more', { n: mostInstances })}</p>}
      {gpus.data && items.length === 0 && <Empty title={t('gpu.none')} help={t('gpu.noneHelp')} icon={MicrochipIcon} />}
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
    </div>
  );
}

export function Nodes() {
  const { t, count, language } = useText();
  const pages = usePages();
  const query = useNodes({ limit: 50, continue: pages.token });
  const columns: Column<Node>[] = [
    { title: t('common.name'), cell: (n) => <Link href={`/nodes/${n.meta.id}`}>{n.meta.name}</Link> },
    {
      title: t('common.state'),
      cell: (n) => (
        <div>
          <StateLabel node={n} />{' '}
          <span className="basalt-note">{[n.assignment?.reason, ...problems(n)].filter(Boolean).join('; ')}</span>
        </div>
      ),
    },
    {
      title: t('inst.size'),
      cell: ({ status: s }) =>
        s?.vcpus ? `${count('inst.vcpus', s.vcpus)}, ${formatBytes(s.memoryBytes ?? 0, language)}` : '–',
    },
    {
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
      title: t('node.version'),
      cell: ({ status: s }) => [s?.version, s?.accelerator].filter(Boolean).join(', ') || '–',
    },
    { title: t('node.seen'), cell: ({ status: s }) => formatTime(s?.seenAt, language) || t('common.never') },
  ];
  return (
    <PageBody title={t('node.title')}>
      <div className="basalt-stack">
        <ObjectList
          label={t('node.title')}
          columns={columns}
          query={query}
          keyOf={(n) => n.meta.id ?? n.meta.name}
          pages={pages}
          empty={<Empty title={t('node.empty')} help={t('node.emptyHelp')} icon={ServerIcon} />}
        />
        <Cards nodes={query.data?.items ?? []} />
      </div>
    </PageBody>
  );
}
