import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { gpus } from '../../api/resource';
import { useText } from '../../i18n';
import type { Gpu } from '../../lib/node';
import { defaultPool } from '../../lib/pool';
import { asCommand } from '../../lib/shell';
import { CheckField } from '../../parts/check-field';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';

interface Form {
  pool: string;
  unschedulable: boolean;
}

/** CardForm sets a GPU's pool, and whether it accepts new tenants. */
export function CardForm({
  gpu,
  pools,
  onDone,
  onClose,
}: {
  gpu: Gpu;
  pools: string[];
  onDone: () => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const edit = useEdit<Gpu, Form>({
    of: gpus,
    object: gpu,
    fields: (g) => ({ pool: g?.spec.pool || defaultPool, unschedulable: g?.spec.unschedulable ?? false }),
    body: (g, spec) => ({
      kind: 'GPU',
      meta: { name: gpu.meta.name, revision: g?.meta.revision, labels: g?.meta.labels },
      spec,
    }),
    onSaved: onDone,
  });
  const { pool, unschedulable } = edit.form;
  return (
    <FormDialog
      title={t('pool.changeTitle', { name: gpu.meta.name })}
      action={t('op.save')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="GPU"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={(f) => t(f === 'pool' ? 'pool.which' : 'pool.close')} />
      <Field id="card-pool" label={t('pool.which')} help={t('pool.cardPoolHelp')} path="spec.pool">
        <FormSelect id="card-pool" value={pool} onChange={(_, v) => edit.set('pool')(v)}>
          {pools.map((p) => (
            <FormSelectOption key={p} value={p} label={p} />
          ))}
        </FormSelect>
      </Field>
      <CheckField
        id="card-closed"
        label={t('pool.close')}
        help={t('pool.closeHelp')}
        path="spec.unschedulable"
        checked={unschedulable}
        onChange={edit.set('unschedulable')}
      />
      <Same cli={asCommand(['gpu', 'set', gpu.meta.name], { pool, unschedulable })} curl={edit.curl} />
    </FormDialog>
  );
}
