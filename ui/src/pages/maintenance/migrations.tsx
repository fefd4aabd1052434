import { Button, Progress } from '@patternfly/react-core';
import { RouteIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { api, ok, type Schemas } from '../../api/client';
import { mostInstances, useInstances, useNodes } from '../../api/queries';
import { change, migrations } from '../../api/resource';
import { mostChoices, useVolumes } from '../../api/storage';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import type { Bulk } from '../../parts/list-bulk';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { ToneLabel, type Tone } from '../../parts/tone';
import { Time } from '../../parts/time';
import { collections } from '../../api/collection';

type Migration = Schemas['Migration'];
type Phase = NonNullable<NonNullable<Migration['status']>['phase']>;

const tones: Partial<Record<Phase, Tone>> = { Succeeded: 'good', Failed: 'bad', Aborted: 'off' };
const phaseOf = (m: Migration): Phase => m.assignment?.phase || 'Pending';
const ended = (m: Migration) => phaseOf(m) in tones;

const abort = (m: Migration) =>
  change(migrations, m.meta.id ?? '', (now) => ({
    kind: now.kind,
    meta: now.meta,
    spec: { ...now.spec, abort: true },
  }));
const forgetMigration = (m: Migration) =>
  ok(api.DELETE('/v1/migrations/{id}', { params: { path: { id: m.meta.id ?? '' } } }));

function How({ migration: m }: { migration: Migration }) {
  const { t, language } = useText();
  const s = m.status;
  const far = s?.totalBytes
    ? t('gpu.vramOf', { used: formatBytes(s.progressBytes ?? 0, language), all: formatBytes(s.totalBytes, language) })
    : '';
  return (
    <div>
      <ToneLabel tone={tones[phaseOf(m)] ?? 'busy'} text={t(`mig.${phaseOf(m)}`)} />{' '}
      <span className="basalt-note">{m.assignment?.reason || s?.lastError}</span>
      {far && !ended(m) && (
        <Progress
          id={`far-${m.meta.id}`}
          aria-label={t('mig.far', { name: m.meta.name })}
          value={(100 * (s?.progressBytes ?? 0)) / (s?.totalBytes ?? 1)}
          size="sm"
          label={far}
          valueText={far}
        />
      )}
    </div>
  );
}

export function Migrations() {
  const { t } = useText();
  const client = useQueryClient();
  const list = useListing(collections.migrations, { sort: '-createdAt' });
  const nodes = useNodes({ limit: 1000 });
  const instances = useInstances({ limit: mostInstances });
  const volumes = useVolumes({ limit: mostChoices });
  const aborting = useRemoval<Migration>({
    remove: abort,
    title: () => t('mig.abortTitle'),
    help: t('mig.abortHelp'),
    action: t('mig.abort'),
    untyped: true,
  });
  const bulk: Bulk<Migration>[] = [
    { id: 'forget', text: t('mig.forget'), help: t('mig.forgetHelp'), applies: ended, run: forgetMigration },
    { ...aborting.bulk((m) => !ended(m) && !m.spec.abort), id: 'abort' },
  ];
  const forget = useMutation({
    mutationFn: forgetMigration,
    onSuccess: () => client.invalidateQueries({ queryKey: ['Migration', 'list'] }),
  });
  const node = (id: string | undefined) => nodes.data?.items.find((n) => n.meta.id === id)?.meta.name ?? id ?? '–';
  const columns: Column<Migration>[] = [
    {
      id: 'subject',
      title: t('mig.subject'),
      cell: ({ spec: { instance, volume } }) =>
        volume ? (
          (volumes.data?.items.find((v) => v.meta.id === volume)?.meta.name ?? volume)
        ) : (
          <Link href={`/instances/${instance}`}>
            {instances.data?.items.find((i) => i.meta.id === instance)?.meta.name ?? instance}
          </Link>
        ),
    },
    { id: 'state', sort: 'state', title: t('common.state'), value: phaseOf, cell: (m) => <How migration={m} /> },
    {
      id: 'way',
      title: t('mig.way'),
      cell: ({ spec, assignment: a }) => t('mig.fromTo', { from: node(a?.source), to: node(a?.target || spec.target) }),
    },
    {
      id: 'downtime',
      sort: 'status.downtimeMillis',
      title: t('mig.downtime'),
      cell: ({ status: s }) => (s?.downtimeMillis === undefined ? '–' : t('mig.millis', { n: s.downtimeMillis })),
    },
    {
      id: 'created',
      sort: 'createdAt',
      title: t('common.created'),
      value: (m) => m.meta.createdAt,
      cell: (m) => <Time at={m.meta.createdAt} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (m) =>
        ended(m) ? (
          <Button
            variant="link"
            isInline
            isDisabled={forget.isPending}
            aria-label={`${t('mig.forget')}: ${m.meta.name}`}
            onClick={() => forget.mutate(m)}
          >
            {t('mig.forget')}
          </Button>
        ) : m.spec.abort ? (
          t('mig.aborting')
        ) : (
          <Button
            variant="link"
            isInline
            isDanger
            aria-label={`${t('mig.abort')}: ${m.meta.name}`}
            onClick={() => aborting.ask(m)}
          >
            {t('mig.abort')}
          </Button>
        ),
    },
  ];
  return (
    <>
      <ObjectList
        name="migrations"
        label={t('mnt.migrations')}
        columns={columns}
        list={list}
        bulk={bulk}
        keyOf={(m) => m.meta.id ?? m.meta.name}
        empty={<Empty title={t('mig.empty')} help={t('mig.emptyHelp')} icon={RouteIcon} />}
      />
      {aborting.dialog}
    </>
  );
}
