import { Checkbox, TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { atField } from '../api/fields';
import { useText, type Key } from '../i18n';
import { asCommand, asCurl } from '../lib/shell';
import { describedBy, Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';

type External = Schemas['ExternalNetwork'];

const fields = [
  { field: 'cidr4', text: 'xnet.cidr4', help: 'xnet.cidr4Help' },
  { field: 'gateway4', text: 'xnet.gateway4' },
  { field: 'ranges4', text: 'xnet.ranges4', help: 'xnet.rangesHelp' },
  { field: 'cidr6', text: 'xnet.cidr6' },
  { field: 'gateway6', text: 'xnet.gateway6' },
  { field: 'ranges6', text: 'xnet.ranges6' },
  { field: 'physicalNetwork', text: 'xnet.cable', help: 'xnet.cableHelp' },
  { field: 'vlan', text: 'xnet.vlan', help: 'xnet.vlanHelp' },
] as const satisfies readonly { field: keyof External['spec']; text: Key; help?: Key }[];
const shown = ['meta.name', 'spec.default', ...fields.map((f) => `spec.${f.field}`)];

const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);

export function ExternalForm({ network, onDone, onClose }: { network?: External; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const s = network?.spec;
  const [name, setName] = useState(network?.meta.name ?? '');
  const [isDefault, setDefault] = useState(s?.default ?? network === undefined);
  const [form, setForm] = useState({ cidr4: s?.cidr4 ?? '', gateway4: s?.gateway4 ?? '', ranges4: s?.ranges4?.join(', ') ?? '', cidr6: s?.cidr6 ?? '', gateway6: s?.gateway6 ?? '', ranges6: s?.ranges6?.join(', ') ?? '', physicalNetwork: s?.physicalNetwork ?? '', vlan: s?.vlan ? String(s.vlan) : '' });
  const { ranges4, ranges6, vlan, ...words } = form;
  const given = Object.fromEntries(Object.entries(words).filter(([, v]) => v.trim() !== '').map(([k, v]) => [k, v.trim()]));
  const spec: External['spec'] = { ...given, ...(ranges4 && { ranges4: list(ranges4) }), ...(ranges6 && { ranges6: list(ranges6) }), ...(vlan && { vlan: Number(vlan) }), ...(isDefault && { default: true }) };
  const body: External = { kind: 'ExternalNetwork', meta: { name, ...(network && { revision: network.meta.revision, labels: network.meta.labels }) }, spec };
  const save = useMutation({
    mutationFn: () => (network ? ok(api.PUT('/v1/external-networks/{id}', { params: { path: { id: network.meta.id ?? '' } }, body })) : ok(api.POST('/v1/external-networks', { body }))),
    onSuccess: onDone,
  });
  const at = (path: string) => atField(save.error, path);
  return (
    <FormDialog title={network ? t('pool.changeTitle', { name: network.meta.name }) : t('xnet.create')} action={network ? t('op.save') : t('common.create')} busy={save.isPending} error={save.error} shown={shown} onSubmit={save.mutate} onClose={onClose}>
      <Field id="net-name" label={t('common.name')} error={at('meta.name')} required>
        <TextInput id="net-name" value={name} onChange={(_, v) => setName(v)} isRequired autoComplete="off" spellCheck={false} validated={at('meta.name') ? 'error' : 'default'} aria-describedby={describedBy('net-name')} />
      </Field>
      {fields.map((f) => {
        const id = `net-${f.field}`;
        const error = at(`spec.${f.field}`);
        return (
          <Field key={id} id={id} label={t(f.text)} help={'help' in f ? t(f.help) : undefined} error={error}>
            <TextInput id={id} type={f.field === 'vlan' ? 'number' : 'text'} value={form[f.field]} onChange={(_, v) => setForm((x) => ({ ...x, [f.field]: v }))} autoComplete="off" spellCheck={false} validated={error ? 'error' : 'default'} aria-describedby={describedBy(id)} />
          </Field>
        );
      })}
      <Checkbox id="net-default" label={t('xnet.isDefault')} description={at('spec.default') ?? t('xnet.isDefaultHelp')} isChecked={isDefault} onChange={(_, v) => setDefault(v)} />
      <Same
        cli={asCommand(['external-network', network ? 'update' : 'create', name || 'NAME'], { cidr4: form.cidr4, gateway4: form.gateway4, ranges4: list(ranges4).join(','), cidr6: form.cidr6, gateway6: form.gateway6, ranges6: list(ranges6).join(','), 'physical-network': form.physicalNetwork, vlan, default: isDefault })}
        curl={asCurl(network ? 'PUT' : 'POST', `/v1/external-networks${network ? `/${network.meta.id}` : ''}`, body)}
      />
    </FormDialog>
  );
}
