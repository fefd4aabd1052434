import { TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { atField } from '../../api/fields';
import { useText } from '../../i18n';
import { asCommand, asCurl } from '../../lib/shell';
import { describedBy, Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';

type Pool = Schemas['GPUPool'];

const shown = ['meta.name', 'spec.maxVgpusPerGpu'];

/** PoolForm makes a pool, or changes one; the default one may not be there as an object yet. */
export function PoolForm({ name, pool, onDone, onClose }: { name?: string; pool?: Pool; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const [form, setForm] = useState({ name: name ?? '', most: String(pool?.spec.maxVgpusPerGpu ?? 0) });
  const set = (field: keyof typeof form) => (_: unknown, v: string) => setForm((f) => ({ ...f, [field]: v }));
  const body: Pool = { kind: 'GPUPool', meta: pool ? { name: form.name, revision: pool.meta.revision, labels: pool.meta.labels } : { name: form.name }, spec: { ...pool?.spec, mode: 'time-sliced', maxVgpusPerGpu: Number(form.most) } };
  const save = useMutation({
    mutationFn: () => (pool ? ok(api.PUT('/v1/gpu-pools/{id}', { params: { path: { id: pool.meta.id ?? '' } }, body })) : ok(api.POST('/v1/gpu-pools', { body }))),
    onSuccess: onDone,
  });
  const at = (path: string) => atField(save.error, path);
  const url = '/v1/gpu-pools';
  return (
    <FormDialog title={name ? t('pool.changeTitle', { name }) : t('pool.create')} help={t('pool.formHelp')} action={pool ? t('op.save') : t('common.create')} busy={save.isPending} error={save.error} shown={shown} onSubmit={save.mutate} onClose={onClose}>
      {name === undefined && (
        <Field id="pool-name" label={t('common.name')} error={at('meta.name')} required>
          <TextInput id="pool-name" value={form.name} onChange={set('name')} isRequired autoComplete="off" spellCheck={false} validated={at('meta.name') ? 'error' : 'default'} aria-describedby={describedBy('pool-name')} />
        </Field>
      )}
      <Field id="pool-most" label={t('pool.most')} help={t('pool.mostHelp')} error={at('spec.maxVgpusPerGpu')}>
        <TextInput id="pool-most" type="number" min={0} step={1} value={form.most} onChange={set('most')} isRequired validated={at('spec.maxVgpusPerGpu') ? 'error' : 'default'} aria-describedby={describedBy('pool-most')} />
      </Field>
      <Same
        cli={asCommand(['gpu-pool', pool ? 'update' : 'create', form.name || 'NAME'], { 'max-vgpus-per-gpu': form.most })}
        curl={asCurl(pool ? 'PUT' : 'POST', pool ? `${url}/${pool.meta.id}` : url, body)}
      />
    </FormDialog>
  );
}
