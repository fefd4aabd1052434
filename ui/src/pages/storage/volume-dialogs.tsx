// Actions on a volume: attach, detach, grow, limit, take a snapshot.
import { FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Instance } from '../../api/client';
import { useInstances } from '../../api/queries';
import { attach, createSnapshot, detach, mostChoices, type Snapshot, type Volume } from '../../api/storage';
import { volumes } from '../../api/resource';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { asCommand, asCurl, changeAsCurl, sizeFlag } from '../../lib/shell';
import { bytesOf, isSize, sizeOf, type Size } from '../../lib/size';
import { limitsOf } from '../../lib/volume';
import { Confirm } from '../../parts/confirm';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';
import { SizeField } from '../../parts/size-field';
import { LimitFields, type Limits } from './limits';

export type VolumeAction = 'attach' | 'detach' | 'grow' | 'limits' | 'snapshot';

interface Props {
  volume: Volume;
  onClose: () => void;
}

const idOf = (v: Volume) => v.meta.id ?? '';

/** useSend sends once, updates the lists, and closes. */
function useSend(send: () => Promise<unknown>, kind: string, onClose: () => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: [kind, 'list'] })),
  });
}

/** AttachSame shows an attachment as a command and as curl. */
export function AttachSame({ volume, instance }: { volume: Volume | undefined; instance: Instance | undefined }) {
  if (!volume || !instance) return null;
  return (
    <Same
      cli={asCommand(['volume', 'attach', volume.meta.name, instance.meta.name])}
      curl={changeAsCurl(volumes, volume, { ...volume, spec: { ...volume.spec, instance: instance.meta.id } })}
    />
  );
}

function Attach({ volume, onClose }: Props) {
  const { t } = useText();
  const instances = useInstances({ project: volume.meta.project, limit: mostChoices });
  const choices = instances.data?.items.filter((i) => !i.meta.deletedAt) ?? [];
  const [chosen, choose] = useState('');
  const instance = chosen || choices[0]?.meta.id || '';
  const send = useSend(() => attach(idOf(volume), instance), 'Volume', onClose);
  return (
    <FormDialog
      title={t('vol.attachTitle', { name: volume.meta.name })}
      help={t('vol.attachHelp')}
      action={t('vol.attach')}
      busy={send.isPending}
      disabled={!instance}
      error={send.error ?? instances.error}
      body={{ spec: { instance } }}
      onSubmit={send.mutate}
      onClose={onClose}
    >
      <Field
        id="attach-to"
        label={t('vol.instance')}
        help={instances.data && choices.length === 0 ? t('vol.noInstances') : undefined}
        path="spec.instance"
      >
        <FormSelect id="attach-to" value={instance} onChange={(_, v) => choose(v)}>
          {choices.map((i) => (
            <FormSelectOption key={i.meta.id} value={i.meta.id} label={i.meta.name} />
          ))}
        </FormSelect>
      </Field>
      <AttachSame volume={volume} instance={choices.find((i) => i.meta.id === instance)} />
    </FormDialog>
  );
}

function Detach({ volume, onClose }: Props) {
  const { t } = useText();
  const send = useSend(() => detach(idOf(volume)), 'Volume', onClose);
  return (
    <Confirm
      title={t('vol.detachTitle', { name: volume.meta.name })}
      help={t('vol.detachHelp')}
      action={t('vol.detach')}
      busy={send.isPending}
      error={send.error}
      onConfirm={send.mutate}
      onClose={onClose}
    />
  );
}

function Grow({ volume, onClose }: Props) {
  const { t, language } = useText();
  const edit = useEdit<Volume, { size: Size }>({
    of: volumes,
    object: volume,
    fields: (v) => ({ size: sizeOf(v?.spec.sizeBytes ?? 0) }),
    body: (v, { size }) => ({
      kind: 'Volume',
      meta: (v ?? volume).meta,
      spec: { ...v?.spec, sizeBytes: bytesOf(size) },
    }),
    onSaved: onClose,
  });
  return (
    <FormDialog
      title={t('vol.growTitle', { name: volume.meta.name })}
      help={t('vol.growHelp')}
      action={t('vol.grow')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="Volume"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={() => t('vol.size')}
        text={(_, v) => (isSize(v) ? formatBytes(bytesOf(v), language) : undefined)}
      />
      <SizeField
        id="grow-size"
        label={t('vol.size')}
        path="spec.sizeBytes"
        size={edit.form.size}
        set={edit.set('size')}
        required
      />
      <Same
        cli={asCommand(['volume', 'set', volume.meta.name], { size: sizeFlag(edit.body.spec.sizeBytes ?? 0) })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}

function limitsForm(volume: Volume | undefined): Limits {
  const q = volume?.spec.qos ?? {};
  return {
    readIOPS: String(q.readIOPS || ''),
    writeIOPS: String(q.writeIOPS || ''),
    readRate: sizeOf(q.readBytesPerSecond ?? 0),
    writeRate: sizeOf(q.writeBytesPerSecond ?? 0),
  };
}

function ChangeLimits({ volume, onClose }: Props) {
  const { t, language } = useText();
  const edit = useEdit<Volume, Limits>({
    of: volumes,
    object: volume,
    fields: limitsForm,
    body: (v, limits) => ({ kind: 'Volume', meta: (v ?? volume).meta, spec: { ...v?.spec, qos: limitsOf(limits) } }),
    onSaved: onClose,
  });
  const q = edit.body.spec.qos ?? {};
  const set = (limits: Partial<Limits>) => {
    for (const [field, value] of Object.entries(limits)) edit.set(field as keyof Limits)(value);
  };
  return (
    <FormDialog
      title={t('vol.limitsTitle', { name: volume.meta.name })}
      action={t('vol.save')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="Volume"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
      wide
    >
      <Conflict
        edit={edit}
        label={(f) => t(`vol.${f}`)}
        text={(_, v) => (isSize(v) ? (bytesOf(v) > 0 ? formatBytes(bytesOf(v), language) : '') : undefined)}
      />
      <LimitFields limits={edit.form} set={set} />
      <Same
        cli={asCommand(['volume', 'set', volume.meta.name], {
          'read-iops': q.readIOPS ?? 0,
          'write-iops': q.writeIOPS ?? 0,
          'read-rate': sizeFlag(q.readBytesPerSecond ?? 0),
          'write-rate': sizeFlag(q.writeBytesPerSecond ?? 0),
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}

export function TakeSnapshot({ volume, onClose }: Props) {
  const { t } = useText();
  const [name, setName] = useState('');
  const body: Snapshot = {
    kind: 'Snapshot',
    meta: { name: name.trim(), project: volume.meta.project },
    spec: { volume: idOf(volume) },
  };
  const send = useSend(() => createSnapshot(body), 'Snapshot', onClose);
  return (
    <FormDialog
      title={t('snap.takeOf', { name: volume.meta.name })}
      help={t('snap.takeHelp')}
      action={t('snap.take')}
      busy={send.isPending}
      error={send.error}
      schema="Snapshot"
      body={body}
      onSubmit={send.mutate}
      onClose={onClose}
    >
      <Field id="snap-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="snap-name"
          value={name}
          onChange={(_, v) => setName(v)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Same
        cli={asCommand(['volume', 'snapshot', volume.meta.name, body.meta.name || 'NAME'])}
        curl={asCurl('POST', '/v1/snapshots', body)}
      />
    </FormDialog>
  );
}

const dialogs = { attach: Attach, detach: Detach, grow: Grow, limits: ChangeLimits, snapshot: TakeSnapshot };

export function VolumeDialog({ action, ...props }: Props & { action: VolumeAction }) {
  const Dialog = dialogs[action];
  return <Dialog {...props} />;
}
