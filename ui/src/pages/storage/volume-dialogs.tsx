// What is done to a volume: attach, detach, grow, limit, take a snapshot.
import { FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useFieldErrors } from '../../api/fields';
import { useInstances } from '../../api/queries';
import { attach, changeVolume, createSnapshot, detach, mostChoices, type Volume } from '../../api/storage';
import { useText } from '../../i18n';
import { bytesOf, sizeOf } from '../../lib/typed-size';
import { limitsOf } from '../../lib/volume';
import { Confirm } from '../../parts/confirm';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { SizeField } from '../../parts/size-field';
import { LimitFields, limitPaths, type Limits } from './limits';

export type VolumeAction = 'attach' | 'detach' | 'grow' | 'limits' | 'snapshot';

interface Props {
  volume: Volume;
  onClose: () => void;
}

const idOf = (v: Volume) => v.meta.id ?? '';

/** useSend sends once, shows the answer by the lists, and closes. */
function useSend(send: () => Promise<unknown>, kind: string, onClose: () => void) {
  const client = useQueryClient();
  return useMutation({ mutationFn: send, onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: [kind, 'list'] })) });
}

function Attach({ volume, onClose }: Props) {
  const { t } = useText();
  const instances = useInstances({ project: volume.meta.project, limit: mostChoices });
  const choices = instances.data?.items.filter((i) => !i.meta.deletedAt) ?? [];
  const [chosen, choose] = useState('');
  const instance = chosen || choices[0]?.meta.id || '';
  const send = useSend(() => attach(idOf(volume), instance), 'Volume', onClose);
  const errors = useFieldErrors(send.error);
  return (
    <FormDialog title={t('vol.attachTitle', { name: volume.meta.name })} help={t('vol.attachHelp')} action={t('vol.attach')} busy={send.isPending} disabled={!instance} error={send.error ?? instances.error} shown={['spec.instance']} onSubmit={send.mutate} onClose={onClose}>
      <Field id="attach-to" label={t('vol.instance')} help={instances.data && choices.length === 0 ? t('vol.noInstances') : undefined} path="spec.instance" errors={errors}>
        <FormSelect id="attach-to" value={instance} onChange={(_, v) => choose(v)}>
          {choices.map((i) => <FormSelectOption key={i.meta.id} value={i.meta.id} label={i.meta.name} />)}
        </FormSelect>
      </Field>
    </FormDialog>
  );
}

function Detach({ volume, onClose }: Props) {
  const { t } = useText();
  const send = useSend(() => detach(idOf(volume)), 'Volume', onClose);
  return <Confirm title={t('vol.detachTitle', { name: volume.meta.name })} help={t('vol.detachHelp')} action={t('vol.detach')} busy={send.isPending} error={send.error} onConfirm={send.mutate} onClose={onClose} />;
}

function Grow({ volume, onClose }: Props) {
  const { t } = useText();
  const [size, setSize] = useState(() => sizeOf(volume.spec.sizeBytes ?? 0));
  const send = useSend(() => changeVolume(idOf(volume), (s) => ({ ...s, sizeBytes: bytesOf(size) })), 'Volume', onClose);
  const errors = useFieldErrors(send.error);
  return (
    <FormDialog title={t('vol.growTitle', { name: volume.meta.name })} help={t('vol.growHelp')} action={t('vol.grow')} busy={send.isPending} error={send.error} shown={['spec.sizeBytes']} onSubmit={send.mutate} onClose={onClose}>
      <SizeField id="grow-size" label={t('vol.size')} path="spec.sizeBytes" errors={errors} size={size} set={setSize} required />
    </FormDialog>
  );
}

function ChangeLimits({ volume, onClose }: Props) {
  const { t } = useText();
  const q = volume.spec.qos ?? {};
  const [limits, setLimits] = useState<Limits>(() => ({
    readIOPS: String(q.readIOPS || ''), writeIOPS: String(q.writeIOPS || ''), readRate: sizeOf(q.readBytesPerSecond ?? 0), writeRate: sizeOf(q.writeBytesPerSecond ?? 0),
  }));
  const send = useSend(() => changeVolume(idOf(volume), (s) => ({ ...s, qos: limitsOf(limits) })), 'Volume', onClose);
  const errors = useFieldErrors(send.error);
  return (
    <FormDialog title={t('vol.limitsTitle', { name: volume.meta.name })} action={t('vol.save')} busy={send.isPending} error={send.error} shown={limitPaths} onSubmit={send.mutate} onClose={onClose} wide>
      <LimitFields limits={limits} errors={errors} set={(l) => setLimits((was) => ({ ...was, ...l }))} />
    </FormDialog>
  );
}

export function TakeSnapshot({ volume, onClose }: Props) {
  const { t } = useText();
  const [name, setName] = useState('');
  const send = useSend(() => createSnapshot({ kind: 'Snapshot', meta: { name: name.trim(), project: volume.meta.project }, spec: { volume: idOf(volume) } }), 'Snapshot', onClose);
  const errors = useFieldErrors(send.error);
  return (
    <FormDialog title={t('snap.takeOf', { name: volume.meta.name })} help={t('snap.takeHelp')} action={t('snap.take')} busy={send.isPending} error={send.error} shown={['meta.name']} onSubmit={send.mutate} onClose={onClose}>
      <Field id="snap-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" errors={errors} required>
        <TextInput id="snap-name" value={name} onChange={(_, v) => setName(v)} isRequired autoComplete="off" spellCheck={false} />
      </Field>
    </FormDialog>
  );
}

const dialogs = { attach: Attach, detach: Detach, grow: Grow, limits: ChangeLimits, snapshot: TakeSnapshot };

export function VolumeDialog({ action, ...props }: Props & { action: VolumeAction }) {
  const Dialog = dialogs[action];
  return <Dialog {...props} />;
}
