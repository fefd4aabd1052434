// Creates a voucher and shows its code, once.
import { Alert, Button, Modal, ModalBody, ModalFooter, ModalHeader } from '@patternfly/react-core';
import { useState } from 'react';
import { useCreateVoucher, type Voucher } from '../api/vouchers';
import { useText } from '../i18n';
import { decimal, parseMicros } from '../lib/amount';
import { asCommand, asCurl } from '../lib/shell';
import { Copyable } from '../parts/copyable';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

export function CreateVoucher({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const create = useCreateVoucher();
  const [form, setForm] = useState({ amount: '', currency: 'EUR', redemptions: '1', expires: '', note: '', code: '' });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  if (create.data) return <Made voucher={create.data} onClose={onClose} />;
  const micros = parseMicros(form.amount);
  const body: Voucher = {
    kind: 'Voucher',
    meta: { name: '' },
    spec: {
      currency: form.currency.trim().toUpperCase(),
      amountMicros: micros ?? NaN,
      redemptions: Number(form.redemptions) || 0,
      ...(form.expires && { expiresAt: `${form.expires}T00:00:00Z` }),
      ...(form.note.trim() && { note: form.note.trim() }),
    },
    ...(form.code.trim() && { code: form.code.trim() }),
  };
  const cli = asCommand(['voucher', 'create', micros === undefined ? 'AMOUNT' : decimal(micros), body.spec.currency], {
    redemptions: form.redemptions === '1' ? undefined : form.redemptions,
    expires: form.expires || undefined,
    note: body.spec.note,
    code: body.code,
  });
  return (
    <FormDialog
      title={t('vch.create')}
      help={t('vch.help')}
      action={t('vch.create')}
      busy={create.isPending}
      error={create.error}
      schema="Voucher"
      body={body}
      onSubmit={() => create.mutate(body)}
      onClose={onClose}
    >
      <TextField
        id="voucher-amount"
        label={t('vch.amount')}
        path="spec.amountMicros"
        value={form.amount}
        onChange={set('amount')}
        required
      />
      <TextField
        id="voucher-currency"
        label={t('vch.currency')}
        path="spec.currency"
        value={form.currency}
        onChange={set('currency')}
        required
      />
      <TextField
        id="voucher-redemptions"
        type="number"
        label={t('vch.redemptions')}
        help={t('vch.redemptionsHelp')}
        path="spec.redemptions"
        value={form.redemptions}
        onChange={set('redemptions')}
        required
      />
      <TextField
        id="voucher-expires"
        type="date"
        label={t('vch.expires')}
        help={t('vch.expiresHelp')}
        path="spec.expiresAt"
        value={form.expires}
        onChange={set('expires')}
      />
      <TextField id="voucher-note" label={t('vch.note')} path="spec.note" value={form.note} onChange={set('note')} />
      <TextField
        id="voucher-code"
        label={t('vch.code')}
        help={t('vch.codeHelp')}
        path="code"
        value={form.code}
        onChange={set('code')}
      />
      <Same cli={cli} curl={asCurl('POST', '/v1/vouchers', body)} />
    </FormDialog>
  );
}

function Made({ voucher, onClose }: { voucher: Voucher; onClose: () => void }) {
  const { t } = useText();
  return (
    <Modal isOpen variant="small" onClose={onClose} aria-labelledby="voucher-made">
      <ModalHeader title={t('vch.made')} labelId="voucher-made" />
      <ModalBody className="basalt-stack">
        <Alert component="p" variant="warning" isInline title={t('vch.once')} />
        <Copyable label={t('vch.code')} text={voucher.code ?? ''} />
      </ModalBody>
      <ModalFooter>
        <Button onClick={onClose}>{t('vch.done')}</Button>
      </ModalFooter>
    </Modal>
  );
}
