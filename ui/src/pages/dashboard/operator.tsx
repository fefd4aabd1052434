// The cluster at a glance: alerts, the use of its GPUs, and free capacity.
import { Link } from 'wouter';
import { usePools, useGpus, useInstances, useNodes, mostInstances } from '../../api/queries';
import { useText } from '../../i18n';
import { pools } from '../../lib/pool';
import { WorstAlerts } from './alerts';
import { CapacityCard } from './capacity';
import { GpuMap } from './gpu-map';

export function OperatorCards() {
  const { t } = useText();
  const [objects, gpus, nodes, instances] = [
    usePools(),
    useGpus(),
    useNodes({ limit: 1000 }),
    useInstances({ limit: mostInstances }),
  ];
  const error = objects.error ?? gpus.error ?? nodes.error ?? instances.error;
  const all = pools(objects.data?.items ?? [], gpus.data?.items ?? [], instances.data?.items ?? []);
  const cards = all.flatMap((p) => p.cards);
  const there = objects.data && gpus.data && nodes.data && instances.data;
  return (
    <>
      <WorstAlerts />
      {(error ?? there) && (
        <div className="basalt-split">
          <GpuMap nodes={nodes.data?.items ?? []} cards={cards} error={error}>
            <Link href="/pools">{t('pool.title')}</Link> <Link href="/nodes">{t('node.title')}</Link>
          </GpuMap>
          <CapacityCard cards={cards} />
        </div>
      )}
    </>
  );
}
