// One instance: its actions, and its views, each at its own address.
import { Button } from '@patternfly/react-core';
import { ServerIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { lazy, Suspense, useState } from 'react';
import { Link } from 'wouter';
import { api, ok, type Instance } from '../../api/client';
import { useInstance } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { Loading } from '../../parts/loading';
import { useText, type Key } from '../../i18n';
import { phaseOf } from '../../lib/phase';
import { Confirm } from '../../parts/confirm';
import { ErrorAlert } from '../../parts/error';
import { Empty } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { PhaseLabel } from '../../parts/phase';
import { Views } from '../../parts/views';
import { Console } from './console';
import { Details } from './details';
import { Events } from './events';
import { Next } from './next';
import { Queue } from './queue';
import { Rescue, Rescued } from './rescue';
import { Steps } from './steps';

// They are loaded when they are opened: the page would be too large with them.
const ChangeInstance = lazy(() => import('./change').then((m) => ({ default: m.ChangeInstance })));
const Reinstall = lazy(() => import('./reinstall').then((m) => ({ default: m.Reinstall })));
const Monitoring = lazy(() => import('./monitoring').then((m) => ({ default: m.Monitoring })));
const Storage = lazy(() => import('./storage').then((m) => ({ default: m.Storage })));
const InstanceNetwork = lazy(() => import('./network').then((m) => ({ default: m.InstanceNetwork })));

const views: { tab: string; text: Key }[] = [
  { tab: '', text: 'one.overview' },
  { tab: 'monitoring', text: 'one.monitoring' },
  { tab: 'console', text: 'one.console' },
  { tab: 'storage', text: 'one.storage' },
  { tab: 'network', text: 'one.network' },
];

type Action = 'start' | 'stop' | 'restart' | 'delete';

const call = (action: Action, id: string): Promise<Instance> => {
  const params = { params: { path: { id } } };
  switch (action) {
    case 'start':
      return ok(api.POST('/v1/instances/{id}/start', params));
    case 'stop':
      return ok(api.POST('/v1/instances/{id}/stop', params));
    case 'restart':
      return ok(api.POST('/v1/instances/{id}/restart', params));
    case 'delete':
      return ok(api.DELETE('/v1/instances/{id}', params));
  }
};

export function InstancePage({ session, id, tab }: { session: Session; id: string; tab: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const query = useInstance(id);
  const [asked, ask] = useState<Action | null>(null);
  const [changing, change] = useState(false);
  const [reinstalling, reinstall] = useState(false);
  const [rescuing, rescue] = useState(false);
  const act = useMutation({
    mutationFn: (a: Action) => call(a, id),
    onSuccess: (i) => {
      client.setQueryData(['Instance', 'one', id], i);
      ask(null);
    },
  });
  const above = { href: '/instances', title: t('inst.title') };
  if (query.isPending) return <Loading />;
  if (query.isError)
    return (
      <PageBody title={id} above={above}>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
      </PageBody>
    );
  const i = query.data;
  if (!i)
    return (
      <PageBody title={t('one.gone')} above={above}>
        <Empty
          title={t('one.gone')}
          help={t('one.goneHelp')}
          icon={ServerIcon}
          action={<Link href="/instances">{t('one.toList')}</Link>}
        />
      </PageBody>
    );
  const phase = phaseOf(i);
  const stopped = i.spec.power === 'Stopped';
  const open = (a: Action) => (act.reset(), ask(a));
  const actions = may(session, 'member') && phase !== 'Deleting' && (
    <>
      {stopped && (
        <Button onClick={() => act.mutate('start')} isLoading={act.isPending && asked === null}>
          {t('one.start')}
        </Button>
      )}
      {!stopped && (
        <Button variant="secondary" onClick={() => open('stop')}>
          {t('one.stop')}
        </Button>
      )}
      {!stopped && (
        <Button variant="secondary" onClick={() => open('restart')}>
          {t('one.restart')}
        </Button>
      )}
      {stopped && phase === 'Stopped' && (
        <Button variant="secondary" onClick={() => reinstall(true)}>
          {t('one.reinstall')}
        </Button>
      )}
      {!i.spec.ephemeral && !i.spec.rescue && (
        <Button variant="secondary" onClick={() => rescue(true)}>
          {t('rescue.action')}
        </Button>
      )}
      <Button variant="secondary" onClick={() => change(true)}>
        {t('op.change')}
      </Button>
      <Button variant="danger" onClick={() => open('delete')}>
        {t('one.delete')}
      </Button>
    </>
  );
  return (
    <PageBody title={i.meta.name} above={above} actions={actions}>
      <div className="basalt-stack">
        <div role="status" aria-label={t('common.state')}>
          <PhaseLabel instance={i} />
        </div>
        <Rescued session={session} instance={i} />
        {asked === null && <ErrorAlert error={act.error} onClose={act.reset} />}
        <Views
          label={t('one.views', { name: i.meta.name })}
          views={views.map((v) => ({
            href: `/instances/${id}${v.tab && `/${v.tab}`}`,
            title: t(v.text),
            active: v.tab === tab,
          }))}
        />
        <Suspense fallback={<Loading />}>
          {tab === '' && <Steps instance={i} />}
          {tab === '' && (
            <div className="basalt-split">
              <div className="basalt-stack">
                <Queue instance={i} />
                <Next instance={i} />
                <Details instance={i} />
              </div>
              <Events instance={i} />
            </div>
          )}
          {tab === 'monitoring' && <Monitoring instance={i} />}
          {tab === 'console' && <Console session={session} instance={i} />}
          {tab === 'storage' && <Storage session={session} instance={i} />}
          {tab === 'network' && <InstanceNetwork session={session} instance={i} />}
        </Suspense>
      </div>
      <Suspense fallback={null}>
        {changing && <ChangeInstance instance={i} onClose={() => change(false)} />}
        {rescuing && <Rescue instance={i} onClose={() => rescue(false)} />}
        {reinstalling && <Reinstall instance={i} onClose={() => reinstall(false)} />}
      </Suspense>
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
