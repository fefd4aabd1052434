// Creates a customer: its name, price book and reseller.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../api/client';
import { useOrganizations, usePriceBooks, type Organization } from '../api/customers';
import { useText } from '../i18n';
import { asCurl, lines, quote } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

export interface NewOrganization {
  name: string;
  displayName: string;
  priceBook: string;
  parent: string;
}

export const organizationOf = (f: NewOrganization): Organization => ({
  kind: 'Organization',
  meta: { name: f.name.trim() },
  spec: {
    ...(f.displayName.trim() && { displayName: f.displayName.trim() }),
    ...(f.priceBook && { priceBook: f.priceBook }),
    ...(f.parent && { parent: f.parent }),
  },
});

const command = ({ meta, spec }: Organization) =>
  lines([
    `basalt organization create ${quote(meta.name || 'NAME')}`,
    ...(spec.displayName ? [`--display-name ${quote(spec.displayName)}`] : []),
    ...(spec.priceBook ? [`--price-book ${quote(spec.priceBook)}`] : []),
    ...(spec.parent ? [`--reseller ${quote(spec.parent)}`] : []),
  ]);

export function useCreateOrganization(onMade: (o: Organization) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (o: Organization) => ok(api.POST('/v1/organizations', { body: o })),
    onSuccess: (o) => (void client.invalidateQueries({ queryKey: ['Organization', 'list'] }), onMade(o)),
  });
}

export function CreateOrganization({
  operator,
  onMade,
  onClose,
}: {
  operator: boolean;
  onMade: (o: Organization) => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const [form, setForm] = useState<NewOrganization>({ name: '', displayName: '', priceBook: '', parent: '' });
  const set = (name: keyof NewOrganization) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const books = usePriceBooks();
  const sellers = useOrganizations({ limit: 1000 }, operator);
  const create = useCreateOrganization(onMade);
  const body = organizationOf(form);
  return (
    <FormDialog
      title={t('cust.create')}
      help={t('cust.emptyHelp')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="Organization"
      body={body}
      onSubmit={() => create.mutate(body)}
      onClose={onClose}
    >
      <TextField
        id="org-name"
        label={t('common.name')}
        help={t('cust.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={set('name')}
        required
      />
      <TextField
        id="org-display"
        label={t('cust.displayName')}
        path="spec.displayName"
        value={form.displayName}
        onChange={set('displayName')}
      />
      <SelectField
        id="org-book"
        label={t('cust.priceBook')}
        path="spec.priceBook"
        value={form.priceBook}
        onChange={set('priceBook')}
        options={[
          ['', t('cust.defaultBook')],
          ...(books.data?.items ?? [])
            .filter((b) => b.meta.name !== 'default')
            .map((b): [string, string] => [b.meta.name, `${b.meta.name} (${b.spec.currency})`]),
        ]}
      />
      {operator && (
        <SelectField
          id="org-parent"
          label={t('cust.reseller')}
          help={t('cust.resellerHelp')}
          path="spec.parent"
          value={form.parent}
          onChange={set('parent')}
          options={[
            ['', t('cust.resellerNone')],
            ...(sellers.data?.items ?? [])
              .filter((o) => !o.meta.organization)
              .map((o): [string, string] => [o.meta.name, o.spec.displayName || o.meta.name]),
          ]}
        />
      )}
      <Same cli={command(body)} curl={asCurl('POST', '/v1/organizations', body)} />
    </FormDialog>
  );
}
