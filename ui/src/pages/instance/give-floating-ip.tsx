// Attaches a floating IP to a port: a free one, or a new one.
import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { pointFloatingIP, type FloatingIP } from '../../api/network';
import { useText } from '../../i18n';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { CreateFloatingIP, PointSame } from '../network/floating';

interface Props {
  instance: string;
  network: string;
  project: string | undefined;
  free: FloatingIP[];
  onClose: () => void;
}

export function GiveFloatingIP({ instance, network, project, free, onClose }: Props) {
  const { t } = useText();
  const client = useQueryClient();
  const [chosen, choose] = useState(free[0]?.meta.id ?? '');
  const [anew, setAnew] = useState(free.length === 0);
  const send = useMutation({
    mutationFn: () => pointFloatingIP(chosen, instance, network),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['FloatingIP', 'list'] })),
  });
  const ip = free.find((f) => f.meta.id === chosen);
  if (anew) return <CreateFloatingIP project={project} port={`${instance} ${network}`} onClose={onClose} />;
  return (
    <FormDialog
      title={t('one.attachIP')}
      action={chosen ? t('fip.attach') : t('common.continue')}
      busy={send.isPending}
      error={send.error}
      body={{ spec: { instance, network } }}
      onSubmit={() => (chosen ? send.mutate() : setAnew(true))}
      onClose={onClose}
    >
      <Field id="give-ip" label={t('lb.floating')} path="spec.instance">
        <FormSelect id="give-ip" value={chosen} onChange={(_, v) => choose(v)}>
          {free.map((f) => (
            <FormSelectOption
              key={f.meta.id}
              value={f.meta.id}
              label={`${f.assignment?.address ?? ''} (${f.meta.name})`}
            />
          ))}
          <FormSelectOption value="" label={t('one.newIP')} />
        </FormSelect>
      </Field>
      {ip && <PointSame ip={ip} instance={instance} network={network} />}
    </FormDialog>
  );
}
