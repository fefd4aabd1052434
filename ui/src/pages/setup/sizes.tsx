// Flavors and GPU pools.
import { Button, Title } from '@patternfly/react-core';
import { useState } from 'react';
import { Link } from 'wouter';
import type { Schemas } from '../../api/client';
import { useGpus } from '../../api/queries';
import { FlavorForm } from '../../forms/flavor';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { ObjectList, type Column } from '../../parts/list';
import { PoolForm } from '../pools/pool-form';

const list = <T,>(items: T[]) => ({ data: { items }, error: null, isPending: false, refetch: () => undefined });

export function SizesStep({ flavors, pools }: { flavors: Schemas['Flavor'][]; pools: Schemas['GPUPool'][] }) {
  const { t, language } = useText();
  const gpus = useGpus();
  const [adding, add] = useState<'flavor' | 'pool' | null>(null);
  const n = gpus.data?.items.length ?? 0;
  const sizes: Column<Schemas['Flavor']>[] = [
    { id: 'name', title: t('common.name'), cell: (f) => f.meta.name },
    { id: 'vcpus', title: t('flv.vcpus'), cell: (f) => f.spec.vcpus },
    { id: 'memoryBytes', title: t('quota.memoryBytes'), cell: (f) => formatBytes(f.spec.memoryBytes, language) },
    {
      id: 'volumeBytes',
      title: t('quota.volumeBytes'),
      cell: (f) => (f.spec.rootBytes ? formatBytes(f.spec.rootBytes, language) : '–'),
    },
  ];
  const sets: Column<Schemas['GPUPool']>[] = [
    { id: 'name', title: t('common.name'), cell: (p) => p.meta.name },
    { id: 'most', title: t('pool.most'), cell: (p) => p.spec.maxVgpusPerGpu || t('pool.unlimited') },
  ];
  return (
    <>
      <Title headingLevel="h3">{t('wizard.sizesFlavors')}</Title>
      <ObjectList
        label={t('wizard.sizesFlavors')}
        columns={sizes}
        query={list(flavors)}
        keyOf={(f) => f.meta.id ?? f.meta.name}
        empty={<p className="basalt-note">{t('wizard.nothing')}</p>}
      />
      <div>
        <Button variant="secondary" onClick={() => add('flavor')}>
          {t('flv.create')}
        </Button>
      </div>
      <Title headingLevel="h3">{t('wizard.sizesPools')}</Title>
      <p>
        {n > 0 ? t('wizard.sizesGpus', { n }) : t('wizard.sizesNoGpus')} <Link href="/nodes">{t('nav.nodes')}</Link>
      </p>
      <ObjectList
        label={t('wizard.sizesPools')}
        columns={sets}
        query={list(pools)}
        keyOf={(p) => p.meta.id ?? p.meta.name}
        empty={<p className="basalt-note">{t('wizard.nothing')}</p>}
      />
      <div>
        <Button variant="secondary" onClick={() => add('pool')}>
          {t('pool.create')}
        </Button>
      </div>
      {adding === 'flavor' && <FlavorForm onClose={() => add(null)} />}
      {adding === 'pool' && <PoolForm onDone={() => add(null)} onClose={() => add(null)} />}
    </>
  );
}
