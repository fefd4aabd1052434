import { Alert, Button, Card, CardBody, CardTitle, Form } from '@patternfly/react-core';
import { EnvelopeIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { atField, elsewhere } from '../api/fields';
import { useDeleteMail, useMailMessages, useMailSettings, useTestMail, type MailMessage } from '../api/mail';
import { MailForm } from '../forms/mail';
import { useText } from '../i18n';
import { formatTime } from '../lib/format';
import { ErrorAlert } from '../parts/error';
import { Empty, ObjectList, type Column } from '../parts/list';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';
import { TextField } from '../parts/text-field';
import { ToneLabel } from '../parts/tone';

const tones = { Waiting: 'busy', Sent: 'good', Failed: 'bad' } as const;

function Test({ enabled }: { enabled: boolean }) {
  const { t } = useText();
  const test = useTestMail();
  const [to, setTo] = useState('');
  return (
    <Form onSubmit={(e) => (e.preventDefault(), test.mutate(to.trim()))}>
      {test.data && (
        <Alert
          component="p"
          variant="info"
          isInline
          isLiveRegion
          title={t('mail.testSent', { to: test.data.spec.to })}
        />
      )}
      <ErrorAlert error={elsewhere(test.error, ['to'])} />
      <TextField
        id="mail-to"
        type="email"
        label={t('mail.to')}
        help={t('mail.toHelp')}
        value={to}
        onChange={setTo}
        error={atField(test.error, 'to')}
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
  const { t, language } = useText();
  const query = useMailMessages();
  const remove = useDeleteMail();
  const columns: Column<MailMessage>[] = [
    { title: t('mail.type'), cell: (m) => t(`mail.type.${m.spec.type}`) },
    { title: t('mail.to'), cell: (m) => m.spec.to },
    {
      title: t('common.state'),
      cell: (m) => {
        const state = m.status?.state || 'Waiting';
        return <ToneLabel tone={tones[state]} text={t(`mail.state.${state}`)} />;
      },
    },
    { title: t('mail.note'), cell: (m) => m.status?.lastError || '–' },
    { title: t('mail.at'), cell: (m) => formatTime(m.status?.doneAt ?? m.meta.createdAt, language) },
    {
      title: t('common.actions'),
      cell: (m) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${m.spec.to}`}
          onClick={() => remove.mutate(m)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <div className="basalt-stack">
      <ErrorAlert error={remove.error} onClose={remove.reset} />
      <ObjectList
        label={t('mail.outbox')}
        columns={columns}
        query={query}
        keyOf={(m) => m.meta.id ?? m.meta.name}
        empty={<Empty title={t('mail.empty')} help={t('mail.emptyHelp')} icon={EnvelopeIcon} />}
      />
    </div>
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
