import { Checkbox, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../../api/client';
import { atField } from '../../api/fields';
import { useText } from '../../i18n';
import type { Gpu } from '../../lib/node';
import { defaultPool } from '../../lib/pool';
import { asCommand, asCurl } from '../../lib/shell';
import { describedBy, Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';

const shown = ['spec.pool'];

/** CardForm says which pool a card is in, and whether it takes new tenants. */
export function CardForm({ gpu, pools, onDone, onClose }: { gpu: Gpu; pools: string[]; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const [pool, setPool] = useState(gpu.spec.pool || defaultPool);
  const [closed, setClosed] = useState(gpu.spec.unschedulable ?? false);
  const body: Gpu = { kind: 'GPU', meta: { name: gpu.meta.name, revision: gpu.meta.revision, labels: gpu.meta.labels }, spec: { pool, unschedulable: closed } };
  const save = useMutation({ mutationFn: () => ok(api.PUT('/v1/gpus/{id}', { params: { path: { id: gpu.meta.id ?? '' } }, body })), onSuccess: onDone });
  return (
    <FormDialog title={t('pool.changeTitle', { name: gpu.meta.name })} action={t('op.save')} busy={save.isPending} error={save.error} shown={shown} onSubmit={save.mutate} onClose={onClose}>
      <Field id="card-pool" label={t('pool.which')} help={t('pool.cardPoolHelp')} error={atField(save.error, 'spec.pool')}>
        <FormSelect id="card-pool" value={pool} onChange={(_, v) => setPool(v)} aria-describedby={describedBy('card-pool')}>
          {pools.map((p) => <FormSelectOption key={p} value={p} label={p} />)}
        </FormSelect>
      </Field>
      <Checkbox id="card-closed" label={t('pool.close')} description={t('pool.closeHelp')} isChecked={closed} onChange={(_, v) => setClosed(v)} />
      <Same cli={asCommand(['gpu', 'update', gpu.meta.name], { pool, unschedulable: closed })} curl={asCurl('PUT', `/v1/gpus/${gpu.meta.id}`, body)} />
    </FormDialog>
  );
}
