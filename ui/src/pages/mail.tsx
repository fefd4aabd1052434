import { Alert, Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { EnvelopeIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { collections } from '../api/collection';
import { deleteMail, useMailSettings, useTestMail, type MailMessage } from '../api/mail';
import { MailForm } from '../forms/mail';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { Form } from '../parts/form';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';
import { TextField } from '../parts/text-field';
import { Time } from '../parts/time';
import { ToneLabel } from '../parts/tone';

const tones = { Waiting: 'busy', Sent: 'good', Failed: 'bad', Bounced: 'bad' } as const;

function Test({ enabled }: { enabled: boolean }) {
  const { t } = useText();
  const test = useTestMail();
  const [to, setTo] = useState('');
  return (
    <Form body={{ to }} busy={test.isPending} error={test.error} onSubmit={() => test.mutate(to.trim())}>
      {test.data && (
        <Alert
          component="p"
          variant="info"
          isInline
          isLiveRegion
          title={t('mail.testSent', { to: test.data.spec.to })}
        />
      )}
      <TextField
        id="mail-to"
        type="email"
        label={t('mail.to')}
        help={t('mail.toHelp')}
        value={to}
        onChange={setTo}
        path="to"
      />
      <div>
        <Button type="submit" variant="secondary" isLoading={test.isPending} isDisabled={!enabled || test.isPending}>
          {t('mail.test')}
        </Button>
      </div>
    </Form>
  );
}

function Outbox() {
  const { t } = useText();
  const list = useListing(collections.mailMessages);
  const columns: Column<MailMessage>[] = [
    { id: 'type', sort: 'spec.type', title: t('mail.type'), cell: (m) => t(`mail.type.${m.spec.type}`) },
    { id: 'to', sort: 'spec.to', title: t('mail.to'), cell: (m) => m.spec.to },
    {
      id: 'state',
      sort: 'status.state',
      title: t('common.state'),
      cell: (m) => {
        const state = m.status?.state || 'Waiting';
        return <ToneLabel tone={tones[state]} text={t(`mail.state.${state}`)} />;
      },
    },
    { id: 'note', sort: 'status.lastError', title: t('mail.note'), cell: (m) => m.status?.lastError || '–' },
    {
      id: 'at',
      sort: 'status.doneAt',
      title: t('mail.at'),
      value: (m) => m.status?.doneAt ?? m.meta.createdAt,
      cell: (m) => <Time at={m.status?.doneAt ?? m.meta.createdAt} />,
    },
  ];
  return (
    <ObjectList
      label={t('mail.outbox')}
      name="mail"
      columns={columns}
      list={list}
      bulk={[{ id: 'delete', text: t('common.delete'), help: t('mail.deleteHelp'), danger: true, run: deleteMail }]}
      nameOf={(m) => m.spec.to}
      keyOf={(m) => m.meta.id ?? m.meta.name}
      empty={<Empty title={t('mail.empty')} help={t('mail.emptyHelp')} icon={EnvelopeIcon} />}
    />
  );
}

export function MailPage() {
  const { t } = useText();
  const query = useMailSettings();
  if (query.isPending) return <Loading />;
  const { data } = query;
  return (
    <PageBody title={t('mail.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('mail.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {data && (
          <>
            {data.enabled && data.status?.lastError && (
              <Alert component="p" variant="warning" isInline title={t('mail.failing')}>
                {data.status.lastError}
              </Alert>
            )}
            {data.bounces && data.status?.bounces?.lastError && (
              <Alert component="p" variant="warning" isInline title={t('mail.bouncesFailing')}>
                {data.status.bounces.lastError}
              </Alert>
            )}
            <div className="basalt-stack basalt-form">
              <Card>
                <CardTitle component="h2">{t('mail.settings')}</CardTitle>
                <CardBody>
                  <MailForm settings={data} />
                </CardBody>
              </Card>
              <Card>
                <CardTitle component="h2">{t('mail.testTitle')}</CardTitle>
                <CardBody>
                  <Test enabled={data.enabled ?? false} />
                </CardBody>
              </Card>
            </div>
            <Card>
              <CardTitle component="h2">{t('mail.outbox')}</CardTitle>
              <CardBody>
                <Outbox />
              </CardBody>
            </Card>
          </>
        )}
      </div>
    </PageBody>
  );
}
