// A GPU and its tenants, with the VRAM that each uses now.
import { Card, CardBody, CardTitle, Progress, ProgressVariant } from '@patternfly/react-core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Instance } from '../api/client';
import { useTenants } from '../api/samples';
import { useText } from '../i18n';
import { formatBytes, formatPercent } from '../lib/format';
import { joined, problems, promised, type Gpu, type Node, type Tenant } from '../lib/node';
import { ErrorAlert } from '../parts/error';
import { ObjectList, type Column } from '../parts/list';
import { useProject } from '../parts/project';

export function GpuCard({
  gpu,
  node,
  tenants,
  children,
}: {
  gpu: Gpu;
  node?: Node;
  tenants: Instance[];
  children?: ReactNode;
}) {
  const { t, language } = useText();
  const { projects } = useProject();
  const now = useTenants(gpu.meta.id ?? '');
  const { vramBytes = 0, vramUsedBytes = 0, model = '' } = gpu.status ?? {};
  const sum = promised(tenants);
  // Current measurements, or what the GPU reported last while its node does not respond.
  const resident = now.data && !now.error ? now.data.items.reduce((n, x) => n + x.vramResidentBytes, 0) : vramUsedBytes;
  const used = t('gpu.vramOf', { used: formatBytes(resident, language), all: formatBytes(vramBytes, language) });
  const percent = vramBytes > 0 ? Math.min(100, (100 * resident) / vramBytes) : 0;
  const items = joined(tenants, now.error ? [] : (now.data?.items ?? []));
  const project = (id?: string) => projects.find((p) => p.meta.id === id)?.meta.name ?? id ?? '–';
  const columns: Column<Tenant>[] = [
    {
      id: 'title',
      title: t('inst.title'),
      cell: (x) => <Link href={`/instances/${x.id}`}>{x.instance?.meta.name ?? x.id}</Link>,
    },
    { id: 'project', title: t('common.project'), cell: (x) => project(x.instance?.meta.project) },
    {
      id: 'share',
      title: t('gpu.share'),
      cell: (x) => (x.share ? formatPercent(x.share, language) : t('inst.bestEffort')),
    },
    { id: 'limit', title: t('gpu.limit'), cell: (x) => formatBytes(x.limit, language) },
    {
      id: 'resident',
      title: t('gpu.resident'),
      cell: (x) =>
        x.now ? (
          <span data-resident={x.now.vramResidentBytes}>{formatBytes(x.now.vramResidentBytes, language)}</span>
        ) : (
          '–'
        ),
    },
    ...(items.some((x) => x.now?.vramSwappedBytes)
      ? [
          {
            id: 'swapped',
            title: t('gpu.swapped'),
            cell: (x: Tenant) => (x.now ? formatBytes(x.now.vramSwappedBytes, language) : '–'),
          },
        ]
      : []),
    {
      id: 'lastMinute',
      title: t('machine.lastMinute'),
      cell: (x) => (x.now ? formatPercent(x.now.gpuPercent, language) : '–'),
    },
  ];
  return (
    <Card>
      <CardTitle component="h3">{model || gpu.meta.name}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('gpu.where', { name: gpu.meta.name, node: node?.meta.name ?? '–' })}</p>
        {problems(gpu).map((p) => (
          <p key={p} role="alert">
            {p}
          </p>
        ))}
        <ErrorAlert error={now.error} onRetry={() => void now.refetch()} />
        <Progress
          id={`vram-${gpu.meta.id}`}
          title={t('gpu.resident')}
          value={percent}
          size="sm"
          label={used}
          valueText={used}
          variant={percent >= 95 ? ProgressVariant.warning : undefined}
        />
        <p>
          {t('gpu.promised', {
            vram: formatBytes(sum.vramBytes, language),
            share: formatPercent(sum.sharePercent, language),
          })}
        </p>
        {items.length > 0 ? (
          <ObjectList
            label={t('gpu.tenants', { name: gpu.meta.name })}
            columns={columns}
            query={{ data: { items }, error: null, isPending: false, refetch: () => undefined }}
            keyOf={(x) => x.id}
            empty={null}
          />
        ) : (
          <p className="basalt-note">{t('gpu.nobody')}</p>
        )}
        {children}
      </CardBody>
    </Card>
  );
}
