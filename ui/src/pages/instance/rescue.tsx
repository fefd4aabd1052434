// Restarts an instance from a rescue medium, and ends the rescue.
import { Alert, AlertActionLink } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Instance } from '../../api/client';
import { useImages } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { asCommand, asCurl } from '../../lib/shell';
import { isMedium } from '../../lib/source';
import { Confirm } from '../../parts/confirm';
import { ErrorAlert } from '../../parts/error';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';
import { SelectField } from '../../parts/text-field';

/** useAct calls an operation on the instance, and keeps the instance that it returns. */
function useAct(i: Instance, call: () => Promise<Instance>, onClose: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: call,
    onSuccess: (now) => {
      client.setQueryData(['Instance', 'one', i.meta.id], now);
      onClose();
    },
  });
}

const of = (i: Instance) => ({ params: { path: { id: i.meta.id ?? '' } } });

export function Rescue({ instance: i, onClose }: { instance: Instance; onClose: () => void }) {
  const { t } = useText();
  const images = useImages(i.meta.project ?? '');
  const media = images.data?.items.filter((x) => isMedium(x) && !x.meta.deletedAt) ?? [];
  const [chosen, choose] = useState('');
  const medium = chosen || media[0]?.meta.id || '';
  const act = useAct(i, () => ok(api.POST('/v1/instances/{id}/rescue', { ...of(i), body: { medium } })), onClose);
  return (
    <FormDialog
      title={t('rescue.title', { name: i.meta.name })}
      help={t(images.isSuccess && media.length === 0 ? 'rescue.noMedia' : 'rescue.help')}
      action={t('rescue.begin')}
      disabled={!medium}
      busy={act.isPending}
      error={act.error}
      schema="InstanceRescue"
      body={{ medium }}
      onSubmit={act.mutate}
      onClose={onClose}
    >
      <ErrorAlert error={images.error} />
      <SelectField
        id="rescue-medium"
        label={t('cd.medium')}
        path="medium"
        value={medium}
        onChange={choose}
        options={media.map((m) => [m.meta.id ?? '', m.meta.name])}
      />
      <Same
        cli={asCommand(['instance', 'rescue', i.meta.name], {
          medium: media.find((m) => m.meta.id === medium)?.meta.name,
        })}
        curl={asCurl('POST', `/v1/instances/${i.meta.id}/rescue`, { medium })}
      />
    </FormDialog>
  );
}

/** Rescued says that the instance boots from a rescue medium, until that is ended. */
export function Rescued({ session, instance: i }: { session: Session; instance: Instance }) {
  const { t } = useText();
  const images = useImages(i.meta.project ?? '');
  const [ending, end] = useState(false);
  const act = useAct(
    i,
    () => ok(api.POST('/v1/instances/{id}/unrescue', of(i))),
    () => end(false),
  );
  if (!i.spec.rescue) return null;
  const medium = images.data?.items.find((x) => x.meta.id === i.spec.rescue)?.meta.name ?? i.spec.rescue;
  return (
    <>
      <Alert
        isInline
        variant="warning"
        title={t('rescue.on', { medium })}
        component="p"
        actionLinks={
          may(session, 'member') && (
            <AlertActionLink onClick={() => (act.reset(), end(true))}>{t('rescue.end')}</AlertActionLink>
          )
        }
      >
        {t('rescue.onHelp')}
      </Alert>
      {ending && (
        <Confirm
          title={t('rescue.endTitle', { name: i.meta.name })}
          help={t(i.spec.power === 'Stopped' ? 'rescue.endStopped' : 'rescue.endRunning')}
          action={t('rescue.end')}
          busy={act.isPending}
          error={act.error}
          onConfirm={act.mutate}
          onClose={() => end(false)}
        />
      )}
    </>
  );
}
