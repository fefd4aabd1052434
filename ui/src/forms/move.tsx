import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Instance, type Schemas } from '../api/client';
import { useNodes } from '../api/queries';
import type { Volume } from '../api/storage';
import { useText } from '../i18n';
import { nodeState } from '../lib/node';
import { asCommand, asCurl } from '../lib/shell';
import { Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';

/** Move requests the migration of an instance or a volume; its progress is shown under Maintenance. */
export function Move({ of, onClose }: { of: Instance | Volume; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const nodes = useNodes({ limit: 1000 }).data?.items ?? [];
  const [target, setTarget] = useState('');
  const { id = '', name, organization } = of.meta;
  const what = of.kind === 'Volume' ? 'volume' : 'instance';
  const body: Schemas['Migration'] = {
    kind: 'Migration',
    meta: { name: '', ...(organization && { organization }) },
    spec: { [what]: id, ...(target && { target }) },
  };
  const save = useMutation({
    mutationFn: () => ok(api.POST('/v1/migrations', { body })),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['Migration', 'list'] })),
  });
  const others = nodes.filter(
    (n) => n.meta.id !== of.assignment?.node && nodeState(n) === 'Ready' && !n.spec.unschedulable,
  );
  return (
    <FormDialog
      title={t('all.moveTitle', { name })}
      help={t(helpOf(of))}
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
        cli={asCommand([what, 'migrate', name], { to: nodes.find((n) => n.meta.id === target)?.meta.name })}
        curl={asCurl('POST', `/v1/migrations`, body)}
      />
    </FormDialog>
  );
}

const helpOf = (of: Instance | Volume) => {
  if (of.kind === 'Volume') return 'all.moveVolume';
  return of.status?.phase === 'Running' ? 'all.moveHelp' : 'all.moveStopped';
};
