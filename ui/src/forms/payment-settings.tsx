// How the cluster accepts payments by card. The secrets can be written but not read: an empty field keeps one.
import { Alert, Button } from '@patternfly/react-core';
import type { PaymentSettings } from '../api/payments';
import { paymentSettings } from '../api/resource';
import { useText, type Key } from '../i18n';
import { decimal, parseMicros } from '../lib/amount';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

const labels = {
  enabled: 'pay.enabled',
  secretKey: 'pay.secretKey',
  webhookSecret: 'pay.webhookSecret',
  portalURL: 'mail.portal',
  minMicros: 'pay.min',
  maxMicros: 'pay.max',
  chargeDisputeFees: 'pay.disputeFees',
} as const satisfies Record<string, Key>;

type Check = 'enabled' | 'chargeDisputeFees';
type Text = Exclude<keyof typeof labels, Check>;
type Fields = Record<Text, string> & Record<Check, boolean>;

const formOf = (s: PaymentSettings | undefined): Fields => ({
  enabled: s?.enabled ?? false,
  secretKey: '',
  webhookSecret: '',
  portalURL: s?.portalURL || location.origin,
  minMicros: decimal(s?.minMicros ?? 0),
  maxMicros: decimal(s?.maxMicros ?? 0),
  chargeDisputeFees: s?.chargeDisputeFees ?? false,
});

const bodyOf = (s: PaymentSettings | undefined, f: Fields): PaymentSettings => ({
  revision: s?.revision,
  enabled: f.enabled,
  provider: s?.provider,
  secretKey: f.secretKey.trim() || undefined,
  webhookSecret: f.webhookSecret.trim() || undefined,
  portalURL: f.portalURL.trim(),
  minMicros: parseMicros(f.minMicros) ?? NaN,
  maxMicros: parseMicros(f.maxMicros) ?? NaN,
  chargeDisputeFees: f.chargeDisputeFees,
});

export function PaymentSettingsForm({ settings }: { settings: PaymentSettings }) {
  const { t } = useText();
  const edit = useEdit<PaymentSettings, Fields>({
    of: paymentSettings,
    object: settings,
    fields: formOf,
    body: bodyOf,
    secrets: { secretKey: 'SECRET_KEY', webhookSecret: 'SIGNING_SECRET' },
  });
  const { form } = edit;
  const text = (name: Text) => ({
    id: `pay-${name}`,
    label: t(labels[name]),
    value: form[name],
    onChange: (v: string) => edit.set(name)(v),
    path: name,
  });
  const check = (name: Check) => ({
    id: `pay-${name}`,
    label: t(labels[name]),
    checked: form[name],
    onChange: edit.set(name),
    path: name,
  });
  const secret = (name: 'secretKey' | 'webhookSecret', kept: boolean | undefined, help: Key) => ({
    ...text(name),
    type: 'password' as const,
    autoComplete: 'new-password',
    help: kept ? t('pay.secretKept') : t(help),
  });
  return (
    <Form schema="PaymentSettings" body={edit.body} busy={edit.busy} error={edit.error} onSubmit={edit.submit}>
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('pay.saved')} />}
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <CheckField {...check('enabled')} />
      <TextField {...secret('secretKey', settings.hasSecretKey, 'pay.secretKeyHelp')} />
      <TextField {...secret('webhookSecret', settings.hasWebhookSecret, 'pay.webhookSecretHelp')} />
      <TextField {...text('portalURL')} type="url" required={form.enabled} help={t('pay.portalHelp')} />
      <TextField {...text('minMicros')} help={t('pay.minHelp')} />
      <TextField {...text('maxMicros')} help={t('pay.maxHelp')} />
      <CheckField {...check('chargeDisputeFees')} help={t('pay.disputeFeesHelp')} />
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same curl={edit.curl} />
    </Form>
  );
}
