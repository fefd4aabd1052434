// One node: its properties, its utilization, and its GPUs with their tenants.
import { Button, Card, CardBody, CardTitle, Title } from '@patternfly/react-core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { mostInstances, useGpus, useInstances, usePools } from '../api/queries';
import { useNode } from '../api/samples';
import { Loading } from '../parts/loading';
import { useText } from '../i18n';
import { useParam } from '../lib/address';
import { formatBytes, formatNumber, formatTime } from '../lib/format';
import { localStorage, nodeState, problems, tenantsOf, type Node } from '../lib/node';
import { pools } from '../lib/pool';
import { Charts } from '../parts/charts';
import { ErrorAlert } from '../parts/error';
import { GpuGrid } from '../parts/gpu-grid';
import { PageBody } from '../parts/page';
import { Rows } from '../parts/rows';
import { GpuCard } from './gpu-card';
import { NodeForm } from './node-form';
import { NodeHardware } from './node-hardware';

function Details({ node }: { node: Node }) {
  const { t, count, language } = useText();
  const s = node.status;
  const pool = localStorage(node);
  return (
    <Card>
      <CardTitle component="h2">{t('machine.details')}</CardTitle>
      <CardBody>
        <Rows
          rows={[
            [
              t('common.state'),
              [
                t(`node.${nodeState(node)}`),
                s?.shuttingDown && t('node.shuttingDown'),
                node.assignment?.reason,
                ...problems(node),
              ]
                .filter(Boolean)
                .join('; '),
            ],
            [
              t('inst.size'),
              s?.vcpus && `${count('inst.vcpus', s.vcpus)}, ${formatBytes(s.memoryBytes ?? 0, language)}`,
            ],
            [
              t('node.storage'),
              s?.storageBytes &&
                t('node.free', {
                  free: formatBytes(s.storageFreeBytes ?? 0, language),
                  all: formatBytes(s.storageBytes, language),
                }),
            ],
            [
              t('node.reserved'),
              (s?.memory?.parts ?? [])
                .map(
                  (p) =>
                    `${t(`memory.${p.name}`)}${p.count > 1 ? ` (${p.count})` : ''} ${formatBytes(p.bytes, language)}`,
                )
                .join(', '),
            ],
            [
              t('node.reservedCpus'),
              [
                ...(s?.processors?.parts ?? []).map(
                  (p) =>
                    `${t(`memory.${p.name}`)}${p.count > 1 && p.name !== 'operator' ? ` (${p.count})` : ''} ${formatNumber(p.milliCpus / 1000, language)}`,
                ),
                s?.reservedCpus && t('node.neverDedicated', { cpus: s.reservedCpus }),
              ]
                .filter(Boolean)
                .join(', '),
            ],
            [
              t('node.promised'),
              pool &&
                t('node.promisedOf', {
                  promised: formatBytes(pool.promisedBytes ?? 0, language),
                  limit: formatBytes(pool.limitBytes ?? 0, language),
                  reserve: formatBytes(pool.reserveBytes ?? 0, language),
                }),
            ],
            [t('machine.hypervisor'), [s?.hypervisor, s?.accelerator].filter(Boolean).join(', ')],
            [t('node.version'), s?.version],
            [t('node.seen'), formatTime(s?.seenAt, language) || t('common.never')],
            [t('one.id'), <code key="id">{node.meta.id}</code>],
          ]}
        />
      </CardBody>
    </Card>
  );
}

/** mostCards is the number of GPUs up to which each has a card of its own. */
const mostCards = 4;

function Cards({ node }: { node: Node }) {
  const { t } = useText();
  const [objects, gpus, instances] = [usePools(), useGpus(), useInstances({ limit: mostInstances })];
  const [chosen, choose] = useParam('gpu');
  const here = (gpus.data?.items ?? []).filter((g) => g.status?.node === node.meta.id);
  const tenants = instances.data?.items ?? [];
  const many = here.length > mostCards;
  const shown = many
    ? here.filter((g, i) => (here.some((x) => x.meta.id === chosen) ? g.meta.id === chosen : i === 0))
    : here;
  return (
    <div className="basalt-stack">
      <Title headingLevel="h2" size="lg">
        {t('gpu.title')}
      </Title>
      <ErrorAlert error={gpus.error ?? instances.error} />
      {gpus.data && here.length === 0 && <p className="basalt-note">{t('machine.noCards')}</p>}
      {many && (
        <GpuGrid
          cards={pools(objects.data?.items ?? [], here, tenants).flatMap((p) => p.cards)}
          selected={shown[0]?.meta.id ?? ''}
          select={choose}
        />
      )}
      {shown.map((g) => (
        <GpuCard key={g.meta.id} gpu={g} node={node} tenants={tenantsOf(g, tenants)}>
          <Charts of="gpus" id={g.meta.id ?? ''} label={t('machine.measuredCard', { name: g.meta.name })} />
        </GpuCard>
      ))}
    </div>
  );
}

export function NodePage({ id }: { id: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const [changing, change] = useState(false);
  const query = useNode(id);
  const above = { href: '/nodes', title: t('node.title') };
  if (query.isPending) return <Loading />;
  if (!query.data)
    return (
      <PageBody title={id} above={above}>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      </PageBody>
    );
  const node = query.data;
  return (
    <PageBody
      title={node.meta.name}
      above={above}
      actions={
        <Button variant="secondary" onClick={() => change(true)}>
          {t('op.change')}
        </Button>
      }
    >
      {changing && (
        <NodeForm
          node={node}
          onClose={() => {
            change(false);
            void client.invalidateQueries({ queryKey: ['Node'] });
          }}
        />
      )}
      <div className="basalt-stack">
        <Details node={node} />
        <Card>
          <CardTitle component="h2">{t('machine.measured')}</CardTitle>
          <CardBody>
            <Charts of="nodes" id={node.meta.id ?? ''} label={t('machine.measured')} />
          </CardBody>
        </Card>
        <Cards node={node} />
        <NodeHardware node={node} />
      </div>
    </PageBody>
  );
}
