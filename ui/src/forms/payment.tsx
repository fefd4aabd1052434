// Records a payment or refund, for operators.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import type { Organization } from '../api/customers';
import { useText } from '../i18n';
import { decimal, parseMicros } from '../lib/amount';
import { asCurl, lines, quote } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

type Payment = Schemas['Payment'];
const types = ['payment', 'refund'] as const;

export function RecordPayment({
  organization: o,
  currency,
  onClose,
}: {
  organization: Organization;
  currency: string;
  onClose: () => void;
}) {
  const { t } = useText();
  const client = useQueryClient();
  const [form, setForm] = useState({
    type: 'payment' as (typeof types)[number],
    amount: '',
    reference: '',
    received: '',
    note: '',
  });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const micros = parseMicros(form.amount);
  const body: Payment = {
    kind: 'Payment',
    meta: { name: '', organization: o.meta.id },
    spec: {
      type: form.type,
      currency,
      amountMicros: micros ?? NaN,
      reference: form.reference.trim(),
      ...(form.received && { receivedAt: `${form.received}T00:00:00Z` }),
      ...(form.note.trim() && { note: form.note.trim() }),
    },
  };
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/payments', { body })),
    onSuccess: () => {
      for (const queryKey of [['Payment', 'list'], ['wallet', o.meta.id], ['ledger', o.meta.id], ['revenue']])
        void client.invalidateQueries({ queryKey });
      onClose();
    },
  });
  const command = lines([
    `basalt payment add ${micros === undefined ? 'AMOUNT' : decimal(micros)} ${currency}`,
    `--organization ${quote(o.meta.name)}`,
    `--reference ${quote(body.spec.reference || 'REFERENCE')}`,
    ...(form.type === 'refund' ? ['--refund'] : []),
    ...(form.received ? [`--received ${form.received}`] : []),
    ...(body.spec.note ? [`--note ${quote(body.spec.note)}`] : []),
  ]);
  return (
    <FormDialog
      title={t('cust.paymentAddTitle', { name: o.meta.name })}
      help={t('cust.paymentEmptyHelp')}
      action={t('cust.record')}
      busy={create.isPending}
      error={create.error}
      schema="Payment"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <SelectField
        id="pay-type"
        label={t('cust.paymentType')}
        path="spec.type"
        value={form.type}
        onChange={set('type')}
        options={types.map((x) => [x, t(`cust.type.${x}`)])}
      />
      <TextField
        id="pay-amount"
        label={t('cust.amount', { currency })}
        path="spec.amountMicros"
        value={form.amount}
        onChange={set('amount')}
        required
      />
      <TextField
        id="pay-reference"
        label={t('cust.reference')}
        help={t('cust.referenceHelp')}
        path="spec.reference"
        value={form.reference}
        onChange={set('reference')}
        required
      />
      <TextField
        id="pay-received"
        type="date"
        label={t('cust.received')}
        path="spec.receivedAt"
        value={form.received}
        onChange={set('received')}
      />
      <TextField id="pay-note" label={t('cust.note')} path="spec.note" value={form.note} onChange={set('note')} />
      <Same cli={command} curl={asCurl('POST', '/v1/payments', body)} />
    </FormDialog>
  );
}
