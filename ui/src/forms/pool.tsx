// A set of GPUs that are shared in one way.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { atField } from '../api/fields';
import { useText } from '../i18n';
import { asCurl } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

type Pool = Schemas['GPUPool'];

export function AddPool({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [most, setMost] = useState('0');
  const body: Pool = { kind: 'GPUPool', meta: { name: name.trim() }, spec: { mode: 'time-sliced', ...(Number(most) > 0 && { maxVgpusPerGpu: Number(most) }) } };
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/gpu-pools', { body })),
    onSuccess: () => (void client.invalidateQueries({ queryKey: ['GPUPool', 'list'] }), onClose()),
  });
  const at = (path: string) => atField(create.error, path);
  return (
    <FormDialog title={t('setup.poolAdd')} action={t('common.create')} busy={create.isPending} error={create.error} shown={['meta.name', 'spec.maxVgpusPerGpu']} onSubmit={create.mutate} onClose={onClose}>
      <TextField id="pool-name" label={t('common.name')} help={t('cust.nameHelp')} error={at('meta.name')} value={name} onChange={setName} required />
      <TextField id="pool-most" type="number" label={t('setup.poolMost')} help={t('setup.poolMostHelp')} error={at('spec.maxVgpusPerGpu')} value={most} onChange={setMost} />
      <Same curl={asCurl('POST', '/v1/gpu-pools', body)} />
    </FormDialog>
  );
}
