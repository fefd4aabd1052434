import { nodes } from '../api/resource';
import { useText } from '../i18n';
import type { Node } from '../lib/node';
import { asCommand } from '../lib/shell';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

interface Form {
  cpus: string;
}

/** NodeForm sets how many CPUs a node keeps for its own services. */
export function NodeForm({ node, onClose }: { node: Node; onClose: () => void }) {
  const { t } = useText();
  const edit = useEdit<Node, Form>({
    of: nodes,
    object: node,
    fields: (n) => ({ cpus: String(n?.spec.reservedCpus ?? 0) }),
    body: (n, f) => ({
      kind: 'Node',
      meta: { name: node.meta.name, revision: n?.meta.revision, labels: n?.meta.labels },
      spec: { ...n?.spec, reservedCpus: Number(f.cpus) || undefined },
    }),
    onSaved: onClose,
  });
  const { cpus } = edit.form;
  return (
    <FormDialog
      title={t('pool.changeTitle', { name: node.meta.name })}
      action={t('op.save')}
      busy={edit.busy}
      disabled={edit.gone || !edit.edited}
      error={edit.error}
      schema="Node"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={() => t('node.keepCpus')} />
      <TextField
        id="node-cpus"
        type="number"
        label={t('node.keepCpus')}
        help={t('node.keepCpusHelp')}
        path="spec.reservedCpus"
        value={cpus}
        onChange={edit.set('cpus')}
      />
      <Same cli={asCommand(['node', 'set', node.meta.name], { 'reserved-cpus': cpus })} curl={edit.curl} />
    </FormDialog>
  );
}
