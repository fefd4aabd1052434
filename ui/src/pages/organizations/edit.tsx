// Changes a customer's name, price book and billing.
import { usePriceBooks, type Organization } from '../../api/customers';
import { organizations } from '../../api/resource';
import { useText, type Key } from '../../i18n';
import { decimal, parseMicros } from '../../lib/amount';
import { asCommand } from '../../lib/shell';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
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
  country: string;
  region: string;
  taxId: string;
}

const formOf = ({ spec: { displayName = '', priceBook = '', billing: b } }: Organization): Form => ({
  displayName,
  priceBook,
  mode: b?.mode ?? 'none',
  timeZone: b?.timeZone ?? '',
  dueDays: b?.dueDays === undefined ? '' : String(b.dueDays),
  credit: b?.creditMicros ? decimal(b.creditMicros) : '',
  address: b?.address?.join('\n') ?? '',
  country: b?.country ?? '',
  region: b?.region ?? '',
  taxId: b?.taxId ?? '',
});

function specOf(o: Organization, f: Form): Organization['spec'] {
  const { billing: old, ...rest } = o.spec;
  const spec: Organization['spec'] = { ...rest, displayName: f.displayName.trim(), priceBook: f.priceBook };
  if (f.mode === 'none') return spec;
  const address = f.address
    .split('\n')
    .map((l) => l.trim())
    .filter(Boolean);
  // Another billing mode begins with its own default terms.
  const kept = old?.mode === f.mode ? old : { since: old?.since, wholesale: old?.wholesale };
  return {
    ...spec,
    billing: {
      ...kept,
      mode: f.mode,
      timeZone: f.timeZone.trim(),
      country: f.country.trim().toUpperCase(),
      region: f.region.trim().toUpperCase(),
      taxId: f.taxId.trim(),
      address,
      ...(f.mode === 'invoice'
        ? f.dueDays.trim() === ''
          ? { dueDays: undefined }
          : { dueDays: Number(f.dueDays) }
        : { creditMicros: parseMicros(f.credit || '0') ?? NaN }),
    },
  };
}

const labels: Record<keyof Form, Key> = {
  displayName: 'cust.displayName',
  priceBook: 'cust.priceBook',
  mode: 'cust.billing',
  timeZone: 'cust.timeZone',
  dueDays: 'cust.dueDays',
  credit: 'cust.credit',
  address: 'cust.address',
  country: 'cust.country',
  region: 'cust.region',
  taxId: 'cust.taxId',
};

export function EditOrganization({ organization: o, onClose }: { organization: Organization; onClose: () => void }) {
  const { t } = useText();
  const edit = useEdit<Organization, Form>({
    of: organizations,
    object: o,
    fields: (x) => formOf(x ?? o),
    body: (x, f) => ({ kind: o.kind, meta: (x ?? o).meta, spec: specOf(x ?? o, f) }),
    onSaved: onClose,
  });
  const { form } = edit;
  const books = usePriceBooks();
  return (
    <FormDialog
      title={t('cust.editTitle', { name: o.meta.name })}
      action={t('cust.save')}
      wide
      busy={edit.busy}
      error={edit.error}
      schema="Organization"
      body={edit.body}
      disabled={edit.gone}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(f, v) =>
          f === 'mode'
            ? t(`cust.billing.${v as Mode}`)
            : f === 'priceBook'
              ? (books.data?.items.find((b) => b.meta.id === v)?.meta.name ?? t('cust.defaultBook'))
              : undefined
        }
      />
      <TextField
        id="edit-display"
        label={t('cust.displayName')}
        path="spec.displayName"
        value={form.displayName}
        onChange={edit.set('displayName')}
      />
      <SelectField
        id="edit-book"
        label={t('cust.priceBook')}
        path="spec.priceBook"
        value={form.priceBook}
        onChange={edit.set('priceBook')}
        options={[
          ['', t('cust.defaultBook')],
          ...(books.data?.items ?? [])
            .filter((b) => b.meta.name !== 'default' || b.meta.id === form.priceBook)
            .map((b): [string, string] => [b.meta.id ?? '', `${b.meta.name} (${b.spec.currency})`]),
        ]}
      />
      <SelectField
        id="edit-mode"
        label={t('cust.billing')}
        value={form.mode}
        onChange={(v) => edit.set('mode')(v as Mode)}
        options={(['none', 'invoice', 'prepaid'] as const).map((m) => [m, t(`cust.billing.${m}`)])}
      />
      {form.mode !== 'none' && (
        <>
          <TextField
            id="edit-zone"
            label={t('cust.timeZone')}
            help={t('cust.timeZoneHelp')}
            path="spec.billing.timeZone"
            value={form.timeZone}
            onChange={edit.set('timeZone')}
          />
          {form.mode === 'invoice' && (
            <TextField
              id="edit-due"
              type="number"
              label={t('cust.dueDays')}
              path="spec.billing.dueDays"
              value={form.dueDays}
              onChange={edit.set('dueDays')}
            />
          )}
          {form.mode === 'prepaid' && (
            <TextField
              id="edit-credit"
              label={t('cust.credit')}
              path="spec.billing.creditMicros"
              value={form.credit}
              onChange={edit.set('credit')}
            />
          )}
          <TextField
            id="edit-address"
            rows={3}
            label={t('cust.address')}
            help={t('cust.addressHelp')}
            path="spec.billing.address"
            value={form.address}
            onChange={edit.set('address')}
          />
          <TextField
            id="edit-country"
            label={t('cust.country')}
            help={t('cust.countryHelp')}
            path="spec.billing.country"
            value={form.country}
            onChange={edit.set('country')}
          />
          <TextField
            id="edit-region"
            label={t('cust.region')}
            path="spec.billing.region"
            value={form.region}
            onChange={edit.set('region')}
          />
          <TextField
            id="edit-tax"
            label={t('cust.taxId')}
            path="spec.billing.taxId"
            value={form.taxId}
            onChange={edit.set('taxId')}
          />
        </>
      )}
      <Same
        cli={asCommand(['organization', 'set', o.meta.name], {
          'display-name': form.displayName.trim(),
          'price-book': books.data?.items.find((b) => b.meta.id === form.priceBook)?.meta.name,
          billing: form.mode,
          ...(form.mode !== 'none' && {
            'time-zone': form.timeZone.trim(),
            country: form.country.trim(),
            region: form.region.trim(),
            'tax-id': form.taxId.trim(),
            ...(form.mode === 'invoice' ? { 'due-days': form.dueDays } : { credit: form.credit }),
          }),
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
