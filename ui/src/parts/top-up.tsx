// The automatic top-up of an organization: its state, and the form that changes it.
import { Alert, Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import { useTopUp, type TopUp } from '../api/cards';
import { topUpOf } from '../api/resource';
import { useText, type Key } from '../i18n';
import { decimal, parseMicros } from '../lib/amount';
import { told } from '../lib/cause';
import { formatMicros, formatTime } from '../lib/format';
import { asCommand } from '../lib/shell';
import { CardField } from './card-field';
import { CheckField } from './check-field';
import { Conflict } from './conflict';
import { useEdit } from './edit';
import { ErrorAlert } from './error';
import { FormDialog } from './form-dialog';
import { Rows } from './rows';
import { Same } from './same';
import { TextField } from './text-field';
import { Note } from './told';
import { ToneLabel, type Tone } from './tone';

const states = {
  Off: ['off', 'topup.state.Off'],
  Ready: ['good', 'topup.state.Ready'],
  Charging: ['busy', 'topup.state.Charging'],
  Retrying: ['warning', 'topup.state.Retrying'],
  Limited: ['warning', 'topup.state.Limited'],
  Stopped: ['bad', 'topup.state.Stopped'],
} as const satisfies Record<string, [Tone, Key]>;

export function TopUpCard({ organization, currency }: { organization: string | undefined; currency: string }) {
  const { t, language } = useText();
  const query = useTopUp(organization);
  const [open, setOpen] = useState(false);
  const top = query.data;
  const s = top?.status;
  const [tone, text] = states[s?.state ?? 'Off'];
  const money = (micros: number | undefined) => formatMicros(micros ?? 0, currency, language);
  return (
    <Card>
      <CardTitle component="h2">{t('topup.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('topup.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {top && (
          <>
            <div role="status">
              <ToneLabel tone={tone} text={t(text)} />
            </div>
            {s?.lastError && top.enabled && (
              <Alert component="p" variant="warning" isInline title={t('topup.failed')}>
                <Note of={told(s.lastError, s.cause)} />
              </Alert>
            )}
            {top.enabled && (
              <Rows
                rows={[
                  [t('topup.below'), money(top.belowMicros)],
                  [t('topup.amount'), money(top.amountMicros)],
                  [t('topup.limit'), money(top.monthlyLimitMicros)],
                  [t('topup.charged'), s?.month && `${money(s.chargedMicros)} (${s.month})`],
                  [t('topup.next'), s?.nextAt && formatTime(s.nextAt, language)],
                ]}
              />
            )}
            <div>
              <Button variant="secondary" onClick={() => setOpen(true)}>
                {t(top.enabled ? 'topup.edit' : 'topup.change')}
              </Button>
            </div>
            {open && (
              <Dialog organization={organization} currency={currency} was={top} onClose={() => setOpen(false)} />
            )}
          </>
        )}
      </CardBody>
    </Card>
  );
}

const labels = {
  enabled: 'topup.enabled',
  belowMicros: 'topup.belowField',
  amountMicros: 'topup.amountField',
  monthlyLimitMicros: 'topup.limitField',
  card: 'topup.card',
} as const satisfies Record<string, Key>;

type Fields = Record<Exclude<keyof typeof labels, 'enabled'>, string> & { enabled: boolean };

const shown = (micros: number | undefined) => (micros ? decimal(micros) : '');

const formOf = (s: TopUp | undefined): Fields => ({
  enabled: s?.enabled || !s?.revision, // the dialog is first opened to enable it
  belowMicros: shown(s?.belowMicros),
  amountMicros: shown(s?.amountMicros),
  monthlyLimitMicros: shown(s?.monthlyLimitMicros),
  card: s?.card ?? '',
});

const bodyOf = (s: TopUp | undefined, f: Fields): TopUp => {
  const micros = (text: string) => (text.trim() === '' && !f.enabled ? 0 : (parseMicros(text) ?? NaN));
  return {
    revision: s?.revision,
    enabled: f.enabled,
    belowMicros: micros(f.belowMicros),
    amountMicros: micros(f.amountMicros),
    monthlyLimitMicros: micros(f.monthlyLimitMicros),
    card: f.card || undefined,
  };
};

function Dialog({
  organization,
  currency,
  was,
  onClose,
}: {
  organization: string | undefined;
  currency: string;
  was: TopUp;
  onClose: () => void;
}) {
  const { t } = useText();
  const edit = useEdit<TopUp, Fields>({
    of: topUpOf(organization),
    object: was,
    fields: formOf,
    body: bodyOf,
    onSaved: onClose,
  });
  const { form } = edit;
  const text = (name: Exclude<keyof Fields, 'enabled' | 'card'>, id: string) => ({
    id,
    label: t(labels[name], { currency }),
    path: name,
    value: form[name],
    onChange: (v: string) => edit.set(name)(v),
    required: form.enabled,
  });
  return (
    <FormDialog
      title={t('topup.title')}
      help={t('topup.dialogHelp')}
      action={t('cust.save')}
      busy={edit.busy}
      error={edit.error}
      schema="TopUp"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={(f) => t(labels[f], { currency })} />
      <CheckField
        id="topup-enabled"
        label={t('topup.enabled')}
        path="enabled"
        checked={form.enabled}
        onChange={edit.set('enabled')}
      />
      <TextField {...text('belowMicros', 'topup-below')} />
      <TextField {...text('amountMicros', 'topup-amount')} />
      <TextField {...text('monthlyLimitMicros', 'topup-limit')} help={t('topup.limitHelp')} />
      <CardField id="topup-card" organization={organization} value={form.card} onChange={edit.set('card')} />
      <Same
        cli={asCommand(['top-up', 'set', form.enabled ? '--enable' : '--disable'], {
          below: form.belowMicros.trim(),
          amount: form.amountMicros.trim(),
          'monthly-limit': form.monthlyLimitMicros.trim(),
          card: form.card || 'default',
          organization,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
