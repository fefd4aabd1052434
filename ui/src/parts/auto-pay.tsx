// The automatic payment of an organization's invoices: its state, and the form that changes it.
import { Alert, Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import { Link } from 'wouter';
import { useAutoPay, type AutoPay } from '../api/cards';
import type { Schemas } from '../api/client';
import { autoPayOf } from '../api/resource';
import { useText, type Key } from '../i18n';
import { told } from '../lib/cause';
import { formatTime } from '../lib/format';
import { asCommand } from '../lib/shell';
import { CardField } from './card-field';
import { CheckField } from './check-field';
import { Conflict } from './conflict';
import { useEdit } from './edit';
import { ErrorAlert } from './error';
import { FormDialog } from './form-dialog';
import { Rows } from './rows';
import { Same } from './same';
import { Note } from './told';
import { ToneLabel, type Tone } from './tone';

const states = {
  Off: ['off', 'topup.state.Off'],
  Ready: ['good', 'topup.state.Ready'],
  Charging: ['busy', 'topup.state.Charging'],
  Retrying: ['warning', 'topup.state.Retrying'],
  Stopped: ['bad', 'autopay.state.Stopped'],
} as const satisfies Record<string, [Tone, Key]>;

export function AutoPayCard({ organization }: { organization: string | undefined }) {
  const { t, language } = useText();
  const query = useAutoPay(organization);
  const [open, setOpen] = useState(false);
  const pays = query.data;
  const [tone, text] = states[pays?.status?.state ?? 'Off'];
  return (
    <Card>
      <CardTitle component="h2">{t('autopay.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('autopay.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {pays && (
          <>
            <div role="status">
              <ToneLabel tone={tone} text={t(text)} />
            </div>
            {pays.status?.leastMicros && <p className="basalt-note">{t('autopay.waits')}</p>}
            {pays.status?.invoices?.map((i) => (
              <Failed key={i.invoice} invoice={i} />
            ))}
            {pays.enabled && (
              <Rows
                rows={[
                  [t('autopay.consentBy'), pays.consentBy],
                  [t('autopay.consentAt'), pays.consentAt && formatTime(pays.consentAt, language)],
                ]}
              />
            )}
            <div>
              <Button variant="secondary" onClick={() => setOpen(true)}>
                {t(pays.enabled ? 'autopay.edit' : 'autopay.change')}
              </Button>
            </div>
            {open && <Dialog organization={organization} was={pays} onClose={() => setOpen(false)} />}
          </>
        )}
      </CardBody>
    </Card>
  );
}

/** Failed shows why an invoice was not charged, when it is charged again, and where it can be paid. */
function Failed({ invoice: i }: { invoice: Schemas['AutoPayInvoice'] }) {
  const { t, language } = useText();
  return (
    <Alert component="p" variant="warning" isInline title={t('autopay.failed', { number: i.number })}>
      <Note of={told(i.lastError, i.cause)} />{' '}
      {i.nextAt ? t('autopay.again', { at: formatTime(i.nextAt, language) }) : t('autopay.notAgain')}{' '}
      <Link href={i.checkout ? `/checkouts/${i.checkout}` : `/invoices/${i.invoice}`}>
        {t('pay.invoiceOf', { number: i.number })}
      </Link>
    </Alert>
  );
}

const labels = {
  enabled: 'autopay.enabled',
  consent: 'autopay.consent',
  card: 'topup.card',
} as const satisfies Record<string, Key>;

interface Fields {
  enabled: boolean;
  consent: boolean;
  card: string;
}

const formOf = (s: AutoPay | undefined): Fields => ({
  enabled: s?.enabled || !s?.revision, // the dialog is first opened to enable it
  consent: s?.consent ?? false,
  card: s?.card ?? '',
});

const bodyOf = (s: AutoPay | undefined, f: Fields): AutoPay => ({
  revision: s?.revision,
  enabled: f.enabled,
  consent: f.consent,
  card: f.card || undefined,
});

function Dialog({
  organization,
  was,
  onClose,
}: {
  organization: string | undefined;
  was: AutoPay;
  onClose: () => void;
}) {
  const { t } = useText();
  const edit = useEdit<AutoPay, Fields>({
    of: autoPayOf(organization),
    object: was,
    fields: formOf,
    body: bodyOf,
    onSaved: onClose,
  });
  const { enabled, consent, card } = edit.form;
  return (
    <FormDialog
      title={t('autopay.title')}
      help={t('autopay.dialogHelp')}
      action={t('cust.save')}
      busy={edit.busy}
      error={edit.error}
      schema="AutoPay"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <CheckField
        id="autopay-enabled"
        label={t('autopay.enabled')}
        path="enabled"
        checked={enabled}
        onChange={edit.set('enabled')}
      />
      <CardField id="autopay-card" organization={organization} value={card} onChange={edit.set('card')} />
      {enabled && (
        <CheckField
          id="autopay-consent"
          label={t('autopay.consent')}
          path="consent"
          checked={consent}
          onChange={edit.set('consent')}
        />
      )}
      <Same
        cli={asCommand(['auto-pay', 'set', enabled ? '--enable' : '--disable', ...(enabled ? ['--consent'] : [])], {
          card: card || 'default',
          organization,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
