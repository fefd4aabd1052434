// Refunds a payment, or a part of it, for those who sell to its organization.
import { useState } from 'react';
import { isOnline, leftOf, useCreateRefund, type Payment, type Refund } from '../api/refunds';
import { useText } from '../i18n';
import { formatMicros } from '../lib/format';
import type { Problem } from '../lib/problems';
import { asCommand, asCurl } from '../lib/shell';
import { CheckField } from '../parts/check-field';
import { FormDialog } from '../parts/form-dialog';
import { MoneyField, moneyText } from '../parts/money-field';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

interface Fields {
  /** In millionths; undefined while the field is empty, NaN if its text is not an amount. */
  amount: number | undefined;
  reason: string;
  manual: boolean;
  reference: string;
}

export function RefundPayment({ payment: p, onClose }: { payment: Payment; onClose: () => void }) {
  const { t, language } = useText();
  const { currency } = p.spec;
  const left = leftOf(p);
  const online = isOnline(p);
  const [form, setForm] = useState<Fields>({ amount: left, reason: '', manual: false, reference: '' });
  const [attempt] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const create = useCreateRefund(p, onClose);
  const byHand = !online || form.manual;
  const amount = formatMicros(form.amount || 0, currency, language);
  // The amount is always sent: without one, what is left at that moment would be refunded.
  const body: Refund = {
    kind: 'Refund',
    meta: { name: '', organization: p.meta.organization },
    spec: {
      payment: p.meta.id ?? '',
      amountMicros: form.amount,
      reason: form.reason.trim(),
      ...(online && form.manual && { manual: true }),
      ...(byHand && { reference: form.reference.trim() }),
    },
  };
  const wrong: Problem[] = [];
  if (form.amount !== undefined && form.amount <= 0)
    wrong.push({ path: 'spec.amountMicros', text: t('cust.amountWrong') });
  if (form.amount !== undefined && form.amount > left)
    wrong.push({
      path: 'spec.amountMicros',
      text: t('refund.tooMuch', { most: formatMicros(left, currency, language) }),
    });
  return (
    <FormDialog
      title={t('refund.formTitle')}
      help={t(byHand ? 'refund.byHandHelp' : 'refund.onlineHelp')}
      action={t('refund.do', { amount })}
      danger
      busy={create.isPending}
      error={create.error}
      schema="Refund"
      body={body}
      wrong={wrong}
      onSubmit={() => create.mutate({ body, key: attempt })}
      onClose={onClose}
    >
      <MoneyField
        id="refund-amount"
        label={t('cust.amount', { currency })}
        help={t('refund.amountHelp', { most: formatMicros(left, currency, language) })}
        path="spec.amountMicros"
        micros={form.amount}
        onChange={(v) => setForm((f) => ({ ...f, amount: v }))}
        required
      />
      <TextField
        id="refund-reason"
        label={t('refund.reason')}
        help={t('refund.reasonHelp')}
        path="spec.reason"
        value={form.reason}
        onChange={(v) => setForm((f) => ({ ...f, reason: v }))}
        required
      />
      {online && (
        <CheckField
          id="refund-manual"
          label={t('refund.manual')}
          path="spec.manual"
          checked={form.manual}
          onChange={(v) => setForm((f) => ({ ...f, manual: v }))}
        />
      )}
      {byHand && (
        <TextField
          id="refund-reference"
          label={t('cust.reference')}
          help={t('refund.referenceHelp')}
          path="spec.reference"
          value={form.reference}
          onChange={(v) => setForm((f) => ({ ...f, reference: v }))}
          required
        />
      )}
      <Same
        cli={asCommand(['refund', 'create', body.spec.payment, moneyText(form.amount) || 'AMOUNT'], {
          reason: body.spec.reason || 'REASON',
          manual: body.spec.manual,
          reference: byHand && (body.spec.reference || 'REFERENCE'),
        })}
        curl={asCurl('POST', '/v1/refunds', body)}
      />
    </FormDialog>
  );
}
