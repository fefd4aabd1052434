// A size that customers choose from.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { atField } from '../api/fields';
import { useText } from '../i18n';
import { gib } from '../lib/draft';
import { asCurl, lines, quote, sizeFlag } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

type Flavor = Schemas['Flavor'];
const shown = ['meta.name', 'spec.vcpus', 'spec.memoryBytes', 'spec.rootBytes'];

export function AddFlavor({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const [form, setForm] = useState({ name: '', vcpus: '2', memory: '4', disk: '20' });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const body: Flavor = { kind: 'Flavor', meta: { name: form.name.trim() }, spec: { vcpus: Number(form.vcpus), memoryBytes: Math.round(Number(form.memory) * gib), rootBytes: Math.round(Number(form.disk) * gib) } };
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/flavors', { body })),
    onSuccess: () => (void client.invalidateQueries({ queryKey: ['Flavor', 'list'] }), onClose()),
  });
  const at = (path: string) => atField(create.error, path);
  return (
    <FormDialog title={t('setup.flavorAdd')} action={t('common.create')} busy={create.isPending} error={create.error} shown={shown} onSubmit={create.mutate} onClose={onClose}>
      <TextField id="flavor-name" label={t('common.name')} help={t('cust.nameHelp')} error={at('meta.name')} value={form.name} onChange={set('name')} required />
      <TextField id="flavor-cpus" type="number" label={t('setup.flavorCpus')} error={at('spec.vcpus')} value={form.vcpus} onChange={set('vcpus')} required />
      <TextField id="flavor-memory" type="number" label={t('setup.flavorMemory')} error={at('spec.memoryBytes')} value={form.memory} onChange={set('memory')} required />
      <TextField id="flavor-disk" type="number" label={t('setup.flavorDisk')} help={t('setup.flavorDiskHelp')} error={at('spec.rootBytes')} value={form.disk} onChange={set('disk')} />
      <Same cli={lines([`basalt flavor create ${quote(body.meta.name || 'NAME')}`, `--vcpus ${form.vcpus}`, `--memory ${sizeFlag(body.spec.memoryBytes)}`, ...(body.spec.rootBytes ? [`--root-size ${sizeFlag(body.spec.rootBytes)}`] : [])])} curl={asCurl('POST', '/v1/flavors', body)} />
    </FormDialog>
  );
}
