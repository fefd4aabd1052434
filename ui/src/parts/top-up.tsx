// The automatic top-up of an organization: its state, and the form that changes it.
import { Alert, Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useState } from 'react';
import { saved, useCards, useSaveTopUp, useTopUp, type TopUp } from '../api/cards';
import { useText, type Key } from '../i18n';
import { decimal, parseMicros } from '../lib/amount';
import { formatMicros, formatTime } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { CheckField } from './check-field';
import { ErrorAlert } from './error';
import { FormDialog } from './form-dialog';
import { Rows } from './rows';
import { Same } from './same';
import { SelectField, TextField } from './text-field';
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
                {s.lastError}
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
                {t('topup.change')}
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

const shown = (micros: number | undefined) => (micros ? decimal(micros) : '');

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
  const save = useSaveTopUp(organization);
  const cards = useCards(organization);
  const [enabled, setEnabled] = useState(was.enabled || !was.revision);
  const [below, setBelow] = useState(shown(was.belowMicros));
  const [amount, setAmount] = useState(shown(was.amountMicros));
  const [limit, setLimit] = useState(shown(was.monthlyLimitMicros));
  const [card, setCard] = useState(was.card ?? '');
  const micros = (text: string) => (text.trim() === '' && !enabled ? 0 : (parseMicros(text) ?? NaN));
  const body: TopUp = {
    revision: was.revision,
    enabled,
    belowMicros: micros(below),
    amountMicros: micros(amount),
    monthlyLimitMicros: micros(limit),
    card: card || undefined,
  };
  return (
    <FormDialog
      title={t('topup.title')}
      help={t('topup.dialogHelp')}
      action={t('cust.save')}
      busy={save.isPending}
      error={save.error}
      schema="TopUp"
      body={body}
      onSubmit={() => save.mutate(body, { onSuccess: onClose })}
      onClose={onClose}
    >
      <CheckField
        id="topup-enabled"
        label={t('topup.enabled')}
        path="enabled"
        checked={enabled}
        onChange={setEnabled}
      />
      <TextField
        id="topup-below"
        label={t('topup.belowField', { currency })}
        path="belowMicros"
        value={below}
        onChange={setBelow}
        required={enabled}
      />
      <TextField
        id="topup-amount"
        label={t('topup.amountField', { currency })}
        path="amountMicros"
        value={amount}
        onChange={setAmount}
        required={enabled}
      />
      <TextField
        id="topup-limit"
        label={t('topup.limitField', { currency })}
        help={t('topup.limitHelp')}
        path="monthlyLimitMicros"
        value={limit}
        onChange={setLimit}
        required={enabled}
      />
      <SelectField
        id="topup-card"
        label={t('topup.card')}
        path="card"
        value={card}
        onChange={setCard}
        options={[
          ['', t('topup.cardDefault')],
          ...saved(cards.data?.items).map((c): [string, string] => [
            c.meta.id ?? '',
            t('card.ending', { brand: c.status?.brand || t('card.brand'), digits: c.status?.lastDigits ?? '' }),
          ]),
        ]}
      />
      <Same
        cli={asCommand(['top-up', 'set', enabled ? '--enable' : '--disable'], {
          below: below.trim(),
          amount: amount.trim(),
          'monthly-limit': limit.trim(),
          card: card || 'default',
          organization,
        })}
        curl={asCurl('PUT', `/v1/top-up?organization=${encodeURIComponent(organization ?? '')}`, body)}
      />
    </FormDialog>
  );
}
