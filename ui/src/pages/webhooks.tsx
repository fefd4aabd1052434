// Webhooks and the state of their deliveries.
import { Button } from '@patternfly/react-core';
import { BellIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { Link } from 'wouter';
import { deleteWebhook, testWebhook, useDeliveries, useWebhook, type Delivery, type Webhook } from '../api/webhooks';
import { useText } from '../i18n';
import { told } from '../lib/cause';
import { stateOf, type WebhookState } from '../lib/webhook';
import { Copyable } from '../parts/copyable';
import { ErrorAlert } from '../parts/error';
import { Empty, ObjectList, useListing, usePages, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { Note } from '../parts/told';
import { ToneLabel, type Tone } from '../parts/tone';
import { Time } from '../parts/time';
import { collections } from '../api/collection';

const tones: Record<WebhookState, Tone> = { active: 'good', paused: 'off', retrying: 'bad', lossy: 'warning' };
const became: Record<Delivery['state'], Tone> = {
  Delivered: 'good',
  Waiting: 'busy',
  Retrying: 'bad',
  GivenUp: 'warning',
  Past: 'off',
};

function State({ webhook: w }: { webhook: Webhook }) {
  const { t } = useText();
  const state = stateOf(w);
  return (
    <div>
      <ToneLabel
        tone={tones[state]}
        text={t(`hook.${state}`, { n: (state === 'retrying' ? w.status?.attempts : w.status?.givenUp) ?? 0 })}
      />{' '}
      <Note of={told(w.status?.lastError, w.status?.cause)} />
    </div>
  );
}

function All() {
  const { t } = useText();
  const list = useListing(collections.webhooks);
  const columns: Column<Webhook>[] = [
    {
      id: 'name',
      sort: 'name',
      title: t('common.name'),
      cell: (w) => <Link href={`/webhooks/${w.meta.id}`}>{w.meta.name}</Link>,
    },
    { id: 'state', sort: 'spec.paused', title: t('common.state'), cell: (w) => <State webhook={w} /> },
    { id: 'url', sort: 'spec.url', title: t('hook.url'), cell: (w) => w.spec.url },
    { id: 'events', title: t('hook.events'), cell: (w) => w.spec.events?.join(', ') || t('hook.all') },
    {
      id: 'deliveredAt',
      sort: 'status.deliveredAt',
      title: t('hook.deliveredAt'),
      value: (w) => w.status?.deliveredAt,
      cell: (w) => <Time at={w.status?.deliveredAt} />,
    },
  ];
  return (
    <PageBody title={t('hook.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('hook.help')}</p>
        <ObjectList
          label={t('hook.title')}
          columns={columns}
          name="webhooks"
          list={list}
          bulk={[
            { id: 'delete', text: t('common.delete'), help: t('hook.deleteHelp'), danger: true, run: deleteWebhook },
          ]}
          nameOf={(w) => w.meta.name}
          keyOf={(w) => w.meta.id ?? ''}
          empty={<Empty title={t('hook.empty')} help={t('hook.emptyHelp')} icon={BellIcon} />}
        />
        <Copyable label={t('op.cli')} text="basalt webhook create NAME --organization ORGANIZATION --url https://…" />
      </div>
    </PageBody>
  );
}

function One({ id }: { id: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const webhook = useWebhook(id);
  const pages = usePages(id);
  const deliveries = useDeliveries(id, { limit: 25, continue: pages.token });
  const test = useMutation({
    mutationFn: () => testWebhook(id),
    onSuccess: () => client.invalidateQueries({ queryKey: ['Webhook'] }),
  });
  const w = webhook.data;
  const columns: Column<Delivery>[] = [
    { id: 'at', title: t('hook.at'), value: (d) => d.event.timestamp, cell: (d) => <Time at={d.event.timestamp} /> },
    { id: 'event', title: t('hook.event'), cell: (d) => d.event.type },
    {
      id: 'state',
      title: t('common.state'),
      cell: (d) => (
        <div>
          <ToneLabel tone={became[d.state]} text={t(`hook.${d.state}`)} /> <Note of={told(d.lastError, d.cause)} />
        </div>
      ),
    },
    { id: 'nextAt', title: t('hook.nextAt'), value: (d) => d.nextAt, cell: (d) => <Time at={d.nextAt} /> },
  ];
  return (
    <PageBody
      title={w?.meta.name ?? id}
      above={{ href: '/webhooks', title: t('hook.title') }}
      actions={
        w && (
          <Button
            variant="secondary"
            isLoading={test.isPending}
            isDisabled={test.isPending}
            onClick={() => test.mutate()}
          >
            {t('hook.test')}
          </Button>
        )
      }
    >
      <div className="basalt-stack">
        <ErrorAlert error={webhook.error ?? test.error} />
        {w && <State webhook={w} />}
        {w && <p className="basalt-note">{w.spec.url}</p>}
        <ObjectList
          label={t('hook.deliveries')}
          columns={columns}
          query={deliveries}
          keyOf={(d) => d.event.id}
          pages={pages}
          empty={<Empty title={t('hook.noEvents')} help={t('hook.noEventsHelp')} icon={BellIcon} />}
        />
        {w && <Copyable label={t('op.cli')} text={`basalt webhook deliveries ${w.meta.name}`} />}
      </div>
    </PageBody>
  );
}

export const Webhooks = ({ id }: { id: string }) => (id ? <One id={id} /> : <All />);
