// Creates a volume: blank, or from an image or a snapshot.
import {
  ExpandableSection,
  FormSelect,
  FormSelectOption,
  FormSelectOptionGroup,
  TextInput,
} from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useImages, useInstances } from '../../api/queries';
import { createVolume, mostChoices, useSnapshots } from '../../api/storage';
import { useText } from '../../i18n';
import { volumeCommand } from '../../lib/commands';
import { isMedium } from '../../lib/source';
import { newVolume, volumeOf, type VolumeDraft } from '../../lib/volume';
import { asCurl } from '../../lib/shell';
import { CheckField } from '../../parts/check-field';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { ProjectField, useNewIn } from '../../parts/project-field';
import { Same } from '../../parts/same';
import { SizeField } from '../../parts/size-field';
import { StoragePoolField } from '../../parts/storage-pool-field';
import { LimitFields } from './limits';

interface Props {
  /** Project of the new volume; otherwise the form offers a choice. */
  project?: string;
  source?: string;
  instance?: string;
  onClose: () => void;
}

export function CreateVolume({ project, source, instance, onClose }: Props) {
  const { t } = useText();
  const client = useQueryClient();
  const place = useNewIn(project);
  const [draft, setDraft] = useState<VolumeDraft>(() => newVolume(source, instance));
  const set =
    <K extends keyof VolumeDraft>(name: K) =>
    (value: VolumeDraft[K]) =>
      setDraft((d) => ({ ...d, [name]: value }));
  const images = useImages(place.id).data?.items.filter((i) => !i.meta.deletedAt && !isMedium(i)) ?? [];
  const snapshots =
    useSnapshots({ project: place.id, limit: mostChoices }).data?.items.filter(
      (s) => s.status?.phase === 'Ready' && !s.meta.deletedAt,
    ) ?? [];
  const instances =
    useInstances({ project: place.id, limit: mostChoices }).data?.items.filter((i) => !i.meta.deletedAt) ?? [];
  const wanted = volumeOf(draft, place.id);
  const create = useMutation({
    mutationFn: () => createVolume(wanted),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['Volume', 'list'] })),
  });
  const fromSnapshot = draft.source.startsWith('snapshot:');
  const byName = volumeOf(draft, place.name);
  return (
    <FormDialog
      title={t('vol.create')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="Volume"
      body={wanted}
      onSubmit={create.mutate}
      onClose={onClose}
      wide
    >
      {!project && <ProjectField of={place} />}
      <Field id="vol-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="vol-name"
          value={draft.name}
          onChange={(_, v) => set('name')(v)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Field id="vol-source" label={t('vol.source')} path={fromSnapshot ? 'spec.snapshot' : 'spec.image'}>
        <FormSelect id="vol-source" value={draft.source} onChange={(_, v) => set('source')(v)}>
          <FormSelectOption value="" label={t('vol.blank')} />
          {images.length > 0 && (
            <FormSelectOptionGroup label={t('vol.images')}>
              {images.map((i) => (
                <FormSelectOption key={i.meta.id} value={`image:${i.meta.id}`} label={i.meta.name} />
              ))}
            </FormSelectOptionGroup>
          )}
          {snapshots.length > 0 && (
            <FormSelectOptionGroup label={t('vol.snapshots')}>
              {snapshots.map((s) => (
                <FormSelectOption key={s.meta.id} value={`snapshot:${s.meta.id}`} label={s.meta.name} />
              ))}
            </FormSelectOptionGroup>
          )}
        </FormSelect>
      </Field>
      <SizeField
        id="vol-size"
        label={t('vol.size')}
        help={draft.source ? t('vol.sizeHelp') : undefined}
        path="spec.sizeBytes"
        size={draft.size}
        set={set('size')}
        required={!draft.source}
      />
      {!instance && (
        <Field id="vol-instance" label={t('vol.instance')} path="spec.instance">
          <FormSelect id="vol-instance" value={draft.instance} onChange={(_, v) => set('instance')(v)}>
            <FormSelectOption value="" label={t('vol.later')} />
            {instances.map((i) => (
              <FormSelectOption key={i.meta.id} value={i.meta.id} label={i.meta.name} />
            ))}
          </FormSelect>
        </Field>
      )}
      {!fromSnapshot && (
        <StoragePoolField
          id="vol-pool"
          label={t('vol.pool')}
          path="spec.pool"
          value={draft.pool}
          onChange={set('pool')}
        />
      )}
      <CheckField
        id="vol-encrypted"
        label={t('vol.wantEncrypted')}
        help={t('vol.encryptedHelp')}
        path="spec.encrypted"
        checked={draft.encrypted}
        onChange={set('encrypted')}
      />
      <ExpandableSection toggleText={t('vol.limits')}>
        <LimitFields limits={draft} set={(l) => setDraft((d) => ({ ...d, ...l }))} />
      </ExpandableSection>
      <Same cli={volumeCommand(byName)} curl={asCurl('POST', '/v1/volumes', byName)} />
    </FormDialog>
  );
}
