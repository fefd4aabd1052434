// GPU pools: what the GPUs of each have, have allocated, and have left.
import { Button, Card, CardBody, CardHeader, CardTitle, Progress, ProgressVariant } from '@patternfly/react-core';
import { MicrochipIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'wouter';
import { api, ok, type Schemas } from '../../api/client';
import { mostInstances, useGpus, useInstances, useNodes, usePools } from '../../api/queries';
import { Loading } from '../../parts/loading';
import { useText } from '../../i18n';
import { formatBytes, formatPercent } from '../../lib/format';
import type { Gpu, Node } from '../../lib/node';
import { defaultPool, pools, type CardFigures, type PoolFigures } from '../../lib/pool';
import { Confirm } from '../../parts/confirm';
import { ErrorAlert } from '../../parts/error';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { Rows } from '../../parts/rows';
import { ToneLabel } from '../../parts/tone';
import { CardForm } from './card-form';
import { PoolForm } from './pool-form';

function Bar({
  id,
  title,
  part,
  whole,
  text,
}: {
  id: string;
  title: string;
  part: number;
  whole: number;
  text: string;
}) {
  const percent = whole > 0 ? (100 * part) / whole : 0;
  return (
    <Progress
      id={id}
      title={title}
      value={Math.min(100, percent)}
      size="sm"
      label={text}
      valueText={text}
      variant={percent > 100 ? ProgressVariant.danger : percent >= 95 ? ProgressVariant.warning : undefined}
    />
  );
}

interface Asks {
  edit: (p: PoolFigures) => void;
  remove: (p: Schemas['GPUPool']) => void;
  card: (g: Gpu) => void;
}

function PoolCard({ figures: p, nodes, asks }: { figures: PoolFigures; nodes: Node[]; asks: Asks }) {
  const { t, language } = useText();
  const bytes = (n: number) => formatBytes(n, language);
  const of = (part: number, whole: number) => t('gpu.vramOf', { used: bytes(part), all: bytes(whole) });
  const time = t('gpu.vramOf', {
    used: formatPercent(p.sharePercent, language),
    all: formatPercent(100 * p.cards.length, language),
  });
  const ratio = (part: number, whole: number) => (whole > 0 ? formatPercent((100 * part) / whole, language) : '–');
  const columns: Column<CardFigures>[] = [
    {
      id: 'card',
      title: t('pool.card'),
      cell: ({ gpu: g }) => (
        <>
          {g.meta.name}
          <br />
          <span className="basalt-note">{g.status?.model}</span>
        </>
      ),
    },
    {
      id: 'node',
      title: t('one.node'),
      cell: ({ gpu: g }) =>
        g.status?.node ? (
          <Link href={`/nodes/${g.status.node}`}>
            {nodes.find((n) => n.meta.id === g.status?.node)?.meta.name ?? g.status.node}
          </Link>
        ) : (
          '–'
        ),
    },
    { id: 'promised', title: t('pool.promised'), cell: (c) => of(c.promisedBytes, c.mayPromiseBytes) },
    { id: 'time', title: t('pool.time'), cell: (c) => formatPercent(c.sharePercent, language) },
    {
      id: 'vgpus',
      title: t('pool.vgpus'),
      cell: (c) => (c.vgpus > 0 ? <Link href={`/all-instances?gpu=${c.gpu.meta.id}`}>{c.vgpus}</Link> : '0'),
    },
    {
      id: 'state',
      title: t('common.state'),
      cell: ({ gpu: g }) =>
        g.spec.unschedulable ? (
          <ToneLabel tone="off" text={t('pool.closed')} />
        ) : (
          <ToneLabel tone="good" text={t('pool.open')} />
        ),
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: ({ gpu: g }) => (
        <Button variant="link" isInline aria-label={`${t('op.change')}: ${g.meta.name}`} onClick={() => asks.card(g)}>
          {t('op.change')}
        </Button>
      ),
    },
  ];
  return (
    <Card>
      <CardHeader
        actions={{
          hasNoOffset: true,
          actions: (
            <>
              <Button variant="link" aria-label={`${t('op.change')}: ${p.name}`} onClick={() => asks.edit(p)}>
                {t('op.change')}
              </Button>
              {p.pool && p.name !== defaultPool && (
                <Button
                  variant="link"
                  isDanger
                  aria-label={`${t('common.delete')}: ${p.name}`}
                  onClick={() => p.pool && asks.remove(p.pool)}
                >
                  {t('common.delete')}
                </Button>
              )}
            </>
          ),
        }}
      >
        <CardTitle component="h2">{p.name}</CardTitle>
      </CardHeader>
      <CardBody className="basalt-stack">
        {p.cards.length === 0 ? (
          <p className="basalt-note">{t('pool.noCards')}</p>
        ) : (
          <div className="basalt-split">
            <div className="basalt-stack">
              <Bar
                id={`promised-${p.name}`}
                title={t('pool.promised')}
                part={p.promisedBytes}
                whole={p.mayPromiseBytes}
                text={of(p.promisedBytes, p.mayPromiseBytes)}
              />
              <Bar
                id={`resident-${p.name}`}
                title={t('gpu.resident')}
                part={p.residentBytes}
                whole={p.vramBytes}
                text={of(p.residentBytes, p.vramBytes)}
              />
              <Bar
                id={`time-${p.name}`}
                title={t('pool.timePromised')}
                part={p.sharePercent}
                whole={100 * p.cards.length}
                text={time}
              />
            </div>
            <Rows
              rows={[
                [t('pool.mode'), t('pool.timeSliced')],
                [
                  t('pool.overcommit'),
                  p.overcommitPercent > 100
                    ? t('pool.overcommitOf', {
                        percent: formatPercent(p.overcommitPercent, language),
                        vram: bytes(p.vramBytes),
                      })
                    : t('pool.noOvercommit'),
                ],
                [t('pool.swapped'), p.overcommitPercent > 100 && bytes(p.swappedBytes)],
                [t('pool.interop'), p.pool?.spec.interop && t('pool.interopOn')],
                [
                  t('pool.ratio'),
                  t('pool.ratioOf', {
                    vram: ratio(p.promisedBytes, p.vramBytes),
                    time: ratio(p.sharePercent, 100 * p.cards.length),
                  }),
                ],
                [
                  t('pool.room'),
                  p.roomiest
                    ? t('pool.roomOn', {
                        vram: bytes(p.roomiest.vramBytes),
                        share: formatPercent(p.roomiest.sharePercent, language),
                        card: p.roomiest.gpu.meta.name,
                      })
                    : t('pool.noRoom'),
                ],
                [
                  t('pool.vgpus'),
                  p.pool?.spec.maxVgpusPerGpu
                    ? t('pool.vgpusOf', { n: p.vgpus, most: p.pool.spec.maxVgpusPerGpu })
                    : String(p.vgpus),
                ],
              ]}
            />
          </div>
        )}
        {p.cards.length > 0 && (
          <ObjectList
            label={t('pool.cardsOf', { name: p.name })}
            columns={columns}
            query={{ data: { items: p.cards }, error: null, isPending: false, refetch: () => undefined }}
            keyOf={(c) => c.gpu.meta.id ?? c.gpu.meta.name}
            empty={null}
          />
        )}
      </CardBody>
    </Card>
  );
}

export function Pools() {
  const { t } = useText();
  const client = useQueryClient();
  const objects = usePools();
  const gpus = useGpus();
  const nodes = useNodes({ limit: 1000 });
  const instances = useInstances({ limit: mostInstances });
  const [editing, edit] = useState<PoolFigures | 'new' | null>(null);
  const [going, remove] = useState<Schemas['GPUPool'] | null>(null);
  const [card, setCard] = useState<Gpu | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['GPUPool', 'list'] });
  const removal = useMutation({
    mutationFn: (p: Schemas['GPUPool']) =>
      ok(api.DELETE('/v1/gpu-pools/{id}', { params: { path: { id: p.meta.id ?? '' } } })),
    onSuccess: () => (remove(null), again()),
  });
  const all = pools(objects.data?.items ?? [], gpus.data?.items ?? [], instances.data?.items ?? []);
  const pending = objects.isPending || gpus.isPending || instances.isPending;
  return (
    <PageBody title={t('pool.title')} actions={<Button onClick={() => edit('new')}>{t('pool.create')}</Button>}>
      <div className="basalt-stack">
        <p>{t('pool.help')}</p>
        <ErrorAlert error={objects.error ?? gpus.error ?? nodes.error ?? instances.error} />
        {instances.data?.continue && <p className="basalt-note">{t('gpu.more', { n: mostInstances })}</p>}
        {pending && <Loading />}
        {gpus.data?.items.length === 0 && <Empty title={t('gpu.none')} help={t('gpu.noneHelp')} icon={MicrochipIcon} />}
        {!pending &&
          all.map((p) => (
            <PoolCard
              key={p.name}
              figures={p}
              nodes={nodes.data?.items ?? []}
              asks={{ edit, remove: (x) => (removal.reset(), remove(x)), card: setCard }}
            />
          ))}
      </div>
      {editing && (
        <PoolForm
          name={editing === 'new' ? undefined : editing.name}
          pool={editing === 'new' ? undefined : editing.pool}
          onDone={() => (edit(null), void again())}
          onClose={() => edit(null)}
        />
      )}
      {card && (
        <CardForm
          gpu={card}
          pools={all.map((p) => p.name)}
          onDone={() => (setCard(null), void client.invalidateQueries({ queryKey: ['GPU', 'list'] }))}
          onClose={() => setCard(null)}
        />
      )}
      {going && (
        <Confirm
          title={t('pool.deleteTitle', { name: going.meta.name })}
          help={t('pool.deleteHelp')}
          action={t('common.delete')}
          danger
          name={going.meta.name}
          busy={removal.isPending}
          error={removal.error}
          onConfirm={() => removal.mutate(going)}
          onClose={() => remove(null)}
        />
      )}
    </PageBody>
  );
}
