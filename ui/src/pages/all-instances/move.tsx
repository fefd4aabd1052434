import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Instance, type Schemas } from '../../api/client';
import { useText } from '../../i18n';
import { nodeState, type Node } from '../../lib/node';
import { asCommand, asCurl } from '../../lib/shell';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';

/** Move requests a migration; its progress is shown under Maintenance. */
export function Move({ instance, nodes, onClose }: { instance: Instance; nodes: Node[]; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const [target, setTarget] = useState('');
  const { id = '', name, organization } = instance.meta;
  const body: Schemas['Migration'] = {
    kind: 'Migration',
    meta: { name: '', ...(organization && { organization }) },
    spec: { instance: id, ...(target && { target }) },
  };
  const save = useMutation({
    mutationFn: () => ok(api.POST('/v1/migrations', { body })),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['Migration', 'list'] })),
  });
  const others = nodes.filter(
    (n) => n.meta.id !== instance.assignment?.node && nodeState(n) === 'Ready' && !n.spec.unschedulable,
  );
  return (
    <FormDialog
      title={t('all.moveTitle', { name })}
      help={t(instance.status?.phase === 'Running' ? 'all.moveHelp' : 'all.moveStopped')}
      action={t('all.move')}
      busy={save.isPending}
      error={save.error}
      schema="Migration"
      body={body}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      <Field
        id="move-target"
        label={t('all.target')}
        help={others.length === 0 ? t('all.noTarget') : undefined}
        path="spec.target"
      >
        <FormSelect id="move-target" value={target} onChange={(_, v) => setTarget(v)}>
          <FormSelectOption value="" label={t('all.anyTarget')} />
          {others.map((n) => (
            <FormSelectOption key={n.meta.id} value={n.meta.id} label={n.meta.name} />
          ))}
        </FormSelect>
      </Field>
      <Same
        cli={asCommand(['instance', 'migrate', name], { to: nodes.find((n) => n.meta.id === target)?.meta.name })}
        curl={asCurl('POST', `/v1/migrations`, body)}
      />
    </FormDialog>
  );
}
