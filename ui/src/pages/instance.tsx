import { Button, Card, CardBody, CardTitle, DescriptionList, DescriptionListDescription, DescriptionListGroup, DescriptionListTerm } from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState, type ReactNode } from 'react';
import { Link } from 'wouter';
import { api, ok, type Instance } from '../api/client';
import { useApps, useConsoleLog, useFlavors, useImages, useInstance } from '../api/queries';
import { may, type Session } from '../api/session';
import { useText } from '../i18n';
import { formatBytes, formatPercent, formatTime } from '../lib/format';
import { noteOf, phaseKey, phaseOf } from '../lib/phase';
import { Confirm } from '../parts/confirm';
import { ErrorAlert } from '../parts/error';
import { Empty } from '../parts/list';
import { PageBody } from '../parts/page';
import { PhaseLabel } from '../parts/phase';
import { Loading } from '../app';

type Action = 'start' | 'stop' | 'restart' | 'delete';

const call = (action: Action, id: string): Promise<Instance> => {
  const params = { params: { path: { id } } };
  switch (action) {
    case 'start': return ok(api.POST('/v1/instances/{id}/start', params));
    case 'stop': return ok(api.POST('/v1/instances/{id}/stop', params));
    case 'restart': return ok(api.POST('/v1/instances/{id}/restart', params));
    case 'delete': return ok(api.DELETE('/v1/instances/{id}', params));
  }
};

interface Seen {
  at: string;
  revision: number;
  phase: ReturnType<typeof phaseOf>;
  note: string;
}

const maxSeen = 50;

/** useSeen is how an instance's state has changed while the page was open, newest first. */
function useSeen(i: Instance | null | undefined): Seen[] {
  const [seen, set] = useState<Seen[]>([]);
  const last = seen[0];
  if (i && (i.meta.revision ?? 0) > (last?.revision ?? -1)) {
    const now = { at: i.meta.updatedAt ?? '', revision: i.meta.revision ?? 0, phase: phaseOf(i), note: noteOf(i) };
    if (!last || last.phase !== now.phase || last.note !== now.note) set([now, ...seen].slice(0, maxSeen));
  }
  return seen;
}

function Rows({ rows }: { rows: [string, ReactNode][] }) {
  return (
    <DescriptionList isHorizontal isCompact>
      {rows.filter(([, v]) => Boolean(v)).map(([term, value]) => (
        <DescriptionListGroup key={term}>
          <DescriptionListTerm>{term}</DescriptionListTerm>
          <DescriptionListDescription>{value}</DescriptionListDescription>
        </DescriptionListGroup>
      ))}
    </DescriptionList>
  );
}

function Details({ instance: i }: { instance: Instance }) {
  const { t, count, language } = useText();
  const flavors = useFlavors();
  const images = useImages('');
  const apps = useApps();
  const { spec, assignment: a = {}, status: s = {} } = i;
  const flavor = flavors.data?.items.find((f) => f.meta.id === spec.flavor);
  const v = spec.vgpu;
  return (
    <Card>
      <CardTitle component="h2">{t('one.details')}</CardTitle>
      <CardBody>
        <Rows
          rows={[
            [t('one.doing'), s.lastError ? '' : noteOf(i)],
            [t('one.error'), s.lastError],
            [t('one.started'), phaseOf(i) === 'Running' && formatTime(s.startedAt, language)],
            [t('one.app'), spec.app && (apps.data?.items.find((x) => x.meta.id === spec.app)?.spec.displayName ?? spec.app)],
            [t('one.image'), images.data?.items.find((x) => x.meta.id === spec.image)?.meta.name ?? spec.image],
            [t('one.flavor'), flavor?.meta.name ?? spec.flavor],
            [t('inst.size'), a.vcpus ? `${count('inst.vcpus', a.vcpus)}, ${formatBytes(a.memoryBytes ?? 0, language)}` : ''],
            [t('one.rootDisk'), (spec.rootBytes || flavor?.spec.rootBytes) && formatBytes(spec.rootBytes || flavor?.spec.rootBytes || 0, language)],
            [t('inst.vgpu'), v ? `${t('inst.vram', { size: formatBytes(v.vramBytes, language) })}, ${v.sharePercent ? t('inst.share', { percent: formatPercent(v.sharePercent, language) }) : t('inst.bestEffort')}` : t('common.none')],
            [t('inst.addresses'), a.ports?.length ? a.ports.flatMap((p) => [p.address4, p.address6]).filter(Boolean).join(', ') : t('one.networkNone')],
            [t('one.node'), a.node],
            [t('one.id'), <code key="id">{i.meta.id}</code>],
            [t('one.created'), formatTime(i.meta.createdAt, language)],
          ]}
        />
      </CardBody>
    </Card>
  );
}

function Events({ seen }: { seen: Seen[] }) {
  const { t, language } = useText();
  return (
    <Card>
      <CardTitle component="h2">{t('one.events')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('one.eventsHelp')}</p>
        <ol aria-live="polite" aria-label={t('one.events')} className="basalt-stack basalt-events">
          {seen.map((e) => (
            <li key={e.revision}>
              <span className="basalt-note">{formatTime(e.at, language)}</span> {t(phaseKey(e.phase))}
              {e.note && `: ${e.note}`}
            </li>
          ))}
        </ol>
      </CardBody>
    </Card>
  );
}

function Console({ instance }: { instance: Instance }) {
  const { t } = useText();
  const log = useConsoleLog(instance.meta.id ?? '', phaseOf(instance) === 'Running');
  return (
    <Card>
      <CardTitle component="h2">{t('one.log')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('one.logHelp')}</p>
        {/* Terminals' control characters say nothing here. */}
        {/* eslint-disable-next-line no-control-regex */}
        {log.data ? <pre className="basalt-log">{log.data.replace(/\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]/g, '')}</pre> : <p>{t('one.logEmpty')}</p>}
      </CardBody>
    </Card>
  );
}

export function InstancePage({ session, id }: { session: Session; id: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const query = useInstance(id);
  const [asked, ask] = useState<Action | null>(null);
  const seen = useSeen(query.data);
  const act = useMutation({
    mutationFn: (a: Action) => call(a, id),
    onSuccess: (i) => {
      client.setQueryData<Instance | null>(['Instance', 'one', id], (old) => (old && (old.meta.revision ?? 0) > (i.meta.revision ?? 0) ? old : old === null ? null : i));
      ask(null);
    },
  });
  const above = { href: '/instances', title: t('inst.title') };
  if (query.isPending) return <Loading />;
  if (query.isError) return <PageBody title={id} above={above}><ErrorAlert error={query.error} onRetry={() => void query.refetch()} /></PageBody>;
  const i = query.data;
  if (!i)
    return (
      <PageBody title={t('one.gone')} above={above}>
        <Empty title={t('one.gone')} help={t('one.goneHelp')} icon={ServerIcon} action={<Link href="/instances">{t('one.toList')}</Link>} />
      </PageBody>
    );
  const phase = phaseOf(i);
  const stopped = i.spec.power === 'Stopped';
  const open = (a: Action) => (act.reset(), ask(a));
  const actions = may(session, 'member') && phase !== 'Deleting' && (
    <>
      {stopped && <Button onClick={() => act.mutate('start')} isLoading={act.isPending && asked === null}>{t('one.start')}</Button>}
      {!stopped && <Button variant="secondary" onClick={() => open('stop')}>{t('one.stop')}</Button>}
      {!stopped && <Button variant="secondary" onClick={() => open('restart')}>{t('one.restart')}</Button>}
      <Button variant="danger" onClick={() => open('delete')}>{t('one.delete')}</Button>
    </>
  );
  return (
    <PageBody title={i.meta.name} above={above} actions={actions}>
      <div className="basalt-stack">
        <div role="status" aria-label={t('common.state')}><PhaseLabel instance={i} /></div>
        {asked === null && <ErrorAlert error={act.error} onClose={act.reset} />}
        <div className="basalt-split">
          <div className="basalt-stack">
            <Details instance={i} />
            <Console instance={i} />
          </div>
          <Events seen={seen} />
        </div>
      </div>
      {asked && asked !== 'start' && (
        <Confirm
          title={t(`one.${asked}Title`, { name: i.meta.name })}
          help={t(`one.${asked}Help`)}
          action={t(`one.${asked}`)}
          danger={asked === 'delete'}
          name={asked === 'delete' ? i.meta.name : undefined}
          busy={act.isPending}
          error={act.error}
          onConfirm={() => act.mutate(asked)}
          onClose={() => (ask(null), act.reset())}
        />
      )}
    </PageBody>
  );
}
