// What may change of a customer: how it is called, what it pays by, and how.
import { useState } from 'react';
import { usePriceBooks, useSaveOrganization, type Organization } from '../../api/customers';
import { atField } from '../../api/fields';
import { useText } from '../../i18n';
import { decimal, parseMicros } from '../../lib/amount';
import { asCurl } from '../../lib/shell';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';
import { SelectField, TextField } from '../../parts/text-field';

type Mode = 'none' | 'invoice' | 'prepaid';

interface Form {
  displayName: string;
  priceBook: string;
  mode: Mode;
  timeZone: string;
  dueDays: string;
  credit: string;
  address: string;
  taxId: string;
}

const formOf = ({ spec: { displayName = '', priceBook = '', billing: b } }: Organization): Form => ({
  displayName, priceBook, mode: b?.mode ?? 'none', timeZone: b?.timeZone ?? '', dueDays: b?.dueDays ? String(b.dueDays) : '',
  credit: b?.creditMicros ? decimal(b.creditMicros) : '', address: b?.address?.join('\n') ?? '', taxId: b?.taxId ?? '',
});

function specOf(o: Organization, f: Form): Organization['spec'] {
  const { billing: old, ...rest } = o.spec;
  const spec: Organization['spec'] = { ...rest, displayName: f.displayName.trim(), priceBook: f.priceBook };
  if (f.mode === 'none') return spec;
  const address = f.address.split('\n').map((l) => l.trim()).filter(Boolean);
  // Another mode's terms are other terms: its own defaults hold.
  const kept = old?.mode === f.mode ? old : { since: old?.since };
  return {
    ...spec,
    billing: { ...kept, mode: f.mode, timeZone: f.timeZone.trim(), taxId: f.taxId.trim(), address, ...(f.mode === 'invoice' ? { dueDays: Number(f.dueDays) || 0 } : { creditMicros: parseMicros(f.credit || '0') ?? 0 }) },
  };
}

const shown = ['spec.displayName', 'spec.priceBook', 'spec.billing.timeZone', 'spec.billing.dueDays', 'spec.billing.creditMicros', 'spec.billing.address', 'spec.billing.taxId'];

export function EditOrganization({ organization: o, onClose }: { organization: Organization; onClose: () => void }) {
  const { t } = useText();
  const [form, setForm] = useState(() => formOf(o));
  const [base] = useState(o); // what the form shows: a change by others meanwhile is a conflict, which the server says
  const set = (name: keyof Form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const books = usePriceBooks();
  const save = useSaveOrganization(base, onClose);
  const at = (path: string) => atField(save.error, path);
  const spec = specOf(base, form);
  const badCredit = form.mode === 'prepaid' && form.credit.trim() !== '' && parseMicros(form.credit) === undefined;
  return (
    <FormDialog title={t('cust.editTitle', { name: o.meta.name })} action={t('cust.save')} wide busy={save.isPending} error={save.error} shown={shown} disabled={badCredit} onSubmit={() => save.mutate(spec)} onClose={onClose}>
      <TextField id="edit-display" label={t('cust.displayName')} error={at('spec.displayName')} value={form.displayName} onChange={set('displayName')} />
      <SelectField
        id="edit-book" label={t('cust.priceBook')} error={at('spec.priceBook')} value={form.priceBook} onChange={set('priceBook')}
        options={[['', t('cust.defaultBook')], ...(books.data?.items ?? []).filter((b) => b.meta.name !== 'default' || b.meta.id === form.priceBook).map((b): [string, string] => [b.meta.id ?? '', `${b.meta.name} (${b.spec.currency})`])]}
      />
      <SelectField id="edit-mode" label={t('cust.billing')} value={form.mode} onChange={set('mode')} options={(['none', 'invoice', 'prepaid'] as const).map((m) => [m, t(`cust.billing.${m}`)])} />
      {form.mode !== 'none' && (
        <>
          <TextField id="edit-zone" label={t('cust.timeZone')} help={t('cust.timeZoneHelp')} error={at('spec.billing.timeZone')} value={form.timeZone} onChange={set('timeZone')} />
          {form.mode === 'invoice' && <TextField id="edit-due" type="number" label={t('cust.dueDays')} error={at('spec.billing.dueDays')} value={form.dueDays} onChange={set('dueDays')} />}
          {form.mode === 'prepaid' && <TextField id="edit-credit" label={t('cust.credit')} error={badCredit ? t('cust.amountWrong') : at('spec.billing.creditMicros')} value={form.credit} onChange={set('credit')} />}
          <TextField id="edit-address" rows={3} label={t('cust.address')} help={t('cust.addressHelp')} error={at('spec.billing.address')} value={form.address} onChange={set('address')} />
          <TextField id="edit-tax" label={t('cust.taxId')} error={at('spec.billing.taxId')} value={form.taxId} onChange={set('taxId')} />
        </>
      )}
      <Same curl={asCurl('PUT', `/v1/organizations/${o.meta.id}`, { kind: o.kind, meta: { name: o.meta.name, revision: base.meta.revision }, spec })} />
    </FormDialog>
  );
}
