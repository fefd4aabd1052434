// The operator's machines: nodes, and cards with the tenants on each.
import { Card, CardBody, CardTitle, Label, Progress, ProgressVariant, Title } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon, MicrochipIcon, ServerIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import type { Instance } from '../api/client';
import { mostInstances, useGpus, useInstances, useNodes } from '../api/queries';
import { useText } from '../i18n';
import { formatBytes, formatPercent, formatTime } from '../lib/format';
import { nodeState, problems, promised, tenantsOf, type Gpu, type Node } from '../lib/node';
import { ErrorAlert } from '../parts/error';
import { Empty, ObjectList, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useProject } from '../shell/project';

function StateLabel({ node }: { node: Node }) {
  const { t } = useText();
  const state = nodeState(node);
  const text = t(`node.${state}`);
  if (state === 'Ready') return <Label color="green" icon={<CheckCircleIcon />}>{text}</Label>;
  return state === 'Lost' || state === 'Suspect' ? <Label color="red" icon={<ExclamationCircleIcon />}>{text}</Label> : <Label color="blue" icon={<InProgressIcon />}>{text}</Label>;
}

function GpuCard({ gpu, node, tenants }: { gpu: Gpu; node?: Node; tenants: Instance[] }) {
  const { t, language } = useText();
  const { projects } = useProject();
  const { vramBytes = 0, vramUsedBytes = 0, model = '' } = gpu.status ?? {};
  const sum = promised(tenants);
  const used = t('gpu.vramOf', { used: formatBytes(vramUsedBytes, language), all: formatBytes(vramBytes, language) });
  const percent = vramBytes > 0 ? Math.min(100, (100 * vramUsedBytes) / vramBytes) : 0;
  const project = (i: Instance) => projects.find((p) => p.meta.id === i.meta.project)?.meta.name ?? i.meta.project;
  const columns: Column<Instance>[] = [
    { title: t('inst.title'), cell: (i) => <Link href={`/instances/${i.meta.id}`}>{i.meta.name}</Link> },
    { title: t('common.project'), cell: project },
    { title: t('gpu.limit'), cell: (i) => formatBytes(i.assignment?.vgpuVramBytes ?? 0, language) },
    { title: t('gpu.share'), cell: (i) => (i.assignment?.vgpuSharePercent ? formatPercent(i.assignment.vgpuSharePercent, language) : t('inst.bestEffort')) },
  ];
  return (
    <Card>
      <CardTitle component="h3">{model || gpu.meta.name}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('gpu.where', { name: gpu.meta.name, node: node?.meta.name ?? '–' })}</p>
        {problems(gpu).map((p) => <p key={p} role="alert">{p}</p>)}
        <Progress id={`vram-${gpu.meta.id}`} title={t('gpu.resident')} value={percent} size="sm" label={used} valueText={used} variant={percent >= 95 ? ProgressVariant.warning : undefined} />
        <p>{t('gpu.promised', { vram: formatBytes(sum.vramBytes, language), share: formatPercent(sum.sharePercent, language) })}</p>
        {tenants.length > 0 ? (
          <ObjectList label={t('gpu.tenants', { name: gpu.meta.name })} columns={columns} query={{ data: { items: tenants }, error: null, isPending: false, refetch: () => undefined }} keyOf={(i) => i.meta.id ?? i.meta.name} empty={null} />
        ) : (
          <p className="basalt-note">{t('gpu.nobody')}</p>
        )}
      </CardBody>
    </Card>
  );
}

function Cards({ nodes }: { nodes: Node[] }) {
  const { t } = useText();
  const gpus = useGpus();
  const instances = useInstances({ limit: mostInstances });
  const items = gpus.data?.items ?? [];
  return (
    <div className="basalt-stack">
      <Title headingLevel="h2" size="lg">{t('gpu.title')}</Title>
      <ErrorAlert error={gpus.error ?? instances.error} />
      {instances.data?.continue && <p className="basalt-note">{t('gpu.more', { n: mostInstances })}</p>}
      {gpus.data && items.length === 0 && <Empty title={t('gpu.none')} help={t('gpu.noneHelp')} icon={MicrochipIcon} />}
      <div className="basalt-columns">
        {items.map((g) => <GpuCard key={g.meta.id} gpu={g} node={nodes.find((n) => n.meta.id === g.status?.node)} tenants={tenantsOf(g, instances.data?.items ?? [])} />)}
      </div>
    </div>
  );
}

export function Nodes() {
  const { t, count, language } = useText();
  const pages = usePages();
  const query = useNodes({ limit: 50, continue: pages.token });
  const columns: Column<Node>[] = [
    { title: t('common.name'), cell: (n) => n.meta.name },
    {
      title: t('common.state'),
      cell: (n) => (
        <div>
          <StateLabel node={n} /> <span className="basalt-note">{[n.assignment?.reason, ...problems(n)].filter(Boolean).join('; ')}</span>
        </div>
      ),
    },
    { title: t('inst.size'), cell: ({ status: s }) => (s?.vcpus ? `${count('inst.vcpus', s.vcpus)}, ${formatBytes(s.memoryBytes ?? 0, language)}` : '–') },
    { title: t('node.storage'), cell: ({ status: s }) => (s?.storageBytes ? t('node.free', { free: formatBytes(s.storageFreeBytes ?? 0, language), all: formatBytes(s.storageBytes, language) }) : '–') },
    { title: t('node.version'), cell: ({ status: s }) => [s?.version, s?.accelerator].filter(Boolean).join(', ') || '–' },
    { title: t('node.seen'), cell: ({ status: s }) => formatTime(s?.seenAt, language) || t('common.never') },
  ];
  return (
    <PageBody title={t('node.title')}>
      <div className="basalt-stack">
        <ObjectList label={t('node.title')} columns={columns} query={query} keyOf={(n) => n.meta.id ?? n.meta.name} pages={pages} empty={<Empty title={t('node.empty')} help={t('node.emptyHelp')} icon={ServerIcon} />} />
        <Cards nodes={query.data?.items ?? []} />
      </div>
    </PageBody>
  );
}
