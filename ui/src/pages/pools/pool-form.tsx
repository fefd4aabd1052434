import { TextInput } from '@patternfly/react-core';
import type { Schemas } from '../../api/client';
import { gpuPools } from '../../api/resource';
import { useText } from '../../i18n';
import { asCommand } from '../../lib/shell';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';

type Pool = Schemas['GPUPool'];

const labels = { name: 'common.name', most: 'pool.most', overcommit: 'pool.overcommitField' } as const;

interface Form {
  name: string;
  most: string;
  overcommit: string;
}

/** PoolForm creates a pool, or changes one; the default one may not exist as an object yet. */
export function PoolForm({
  name,
  pool,
  onDone,
  onClose,
}: {
  name?: string;
  pool?: Pool;
  onDone: () => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const edit = useEdit<Pool, Form>({
    of: gpuPools,
    object: pool,
    fields: (p) => ({
      name: p?.meta.name ?? name ?? '',
      most: String(p?.spec.maxVgpusPerGpu ?? 0),
      overcommit: String(p?.spec.vramOvercommitPercent || 100),
    }),
    body: (p, f) => ({
      kind: 'GPUPool',
      meta: p ? { name: f.name, revision: p.meta.revision, labels: p.meta.labels } : { name: f.name.trim() },
      spec: {
        ...p?.spec,
        mode: 'time-sliced',
        maxVgpusPerGpu: Number(f.most),
        vramOvercommitPercent: Number(f.overcommit),
      },
    }),
    onSaved: onDone,
  });
  const { form } = edit;
  return (
    <FormDialog
      title={name ? t('pool.changeTitle', { name }) : t('pool.create')}
      help={t('pool.formHelp')}
      action={pool ? t('op.save') : t('common.create')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="GPUPool"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      {name === undefined && (
        <Field id="pool-name" label={t('common.name')} path="meta.name" required>
          <TextInput
            id="pool-name"
            value={form.name}
            onChange={(_, v) => edit.set('name')(v)}
            isRequired
            autoComplete="off"
            spellCheck={false}
          />
        </Field>
      )}
      <Field id="pool-most" label={t('pool.most')} help={t('pool.mostHelp')} path="spec.maxVgpusPerGpu">
        <TextInput
          id="pool-most"
          type="number"
          min={0}
          step={1}
          value={form.most}
          onChange={(_, v) => edit.set('most')(v)}
          isRequired
        />
      </Field>
      <Field
        id="pool-overcommit"
        label={t('pool.overcommitField')}
        help={t('pool.overcommitHelp')}
        path="spec.vramOvercommitPercent"
      >
        <TextInput
          id="pool-overcommit"
          type="number"
          min={100}
          max={400}
          step={1}
          value={form.overcommit}
          onChange={(_, v) => edit.set('overcommit')(v)}
          isRequired
        />
      </Field>
      <Same
        cli={asCommand(['gpu-pool', pool ? 'set' : 'create', form.name || 'NAME'], {
          'max-vgpus-per-gpu': form.most,
          'vram-overcommit-percent': form.overcommit,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
