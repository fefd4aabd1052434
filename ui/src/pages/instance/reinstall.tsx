// Reinstalls a stopped instance: from its image, another one, or a backup of a root volume.
import { FormSelect, FormSelectOption, FormSelectOptionGroup } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Instance, type Schemas } from '../../api/client';
import { useImages } from '../../api/queries';
import { mostChoices, useBackups, useVolumes } from '../../api/storage';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { asCommand, asCurl } from '../../lib/shell';
import { isMedium } from '../../lib/source';
import { ErrorAlert } from '../../parts/error';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';

type Backup = Schemas['Backup'];
type Volume = Schemas['Volume'];

/** restorable returns the backups that a root volume can be restored from, the newest first: those that have
 * succeeded, except of volumes that are known not to be root volumes. */
export const restorable = (backups: Backup[], volumes: Volume[]): Backup[] =>
  backups
    .filter((b) => b.status?.phase === 'Succeeded' && !b.meta.deletedAt)
    .filter((b) => volumes.find((v) => v.meta.id === b.spec.volume)?.spec.root ?? true)
    .toSorted((a, b) => (b.meta.createdAt ?? '').localeCompare(a.meta.createdAt ?? ''));

export function Reinstall({ instance: i, onClose }: { instance: Instance; onClose: () => void }) {
  const { t, language } = useText();
  const client = useQueryClient();
  const project = i.meta.project ?? '';
  const images = useImages(project);
  const backups = useBackups({ project, limit: mostChoices });
  const volumes = useVolumes({ project, limit: mostChoices });
  // Empty for the instance's image; else image:ID or backup:ID.
  const [source, setSource] = useState('');
  const [typed, setTyped] = useState('');
  const [kind, id] = source.split(':');
  const body: Schemas['InstanceReinstall'] = kind ? { [kind]: id } : {};
  const act = useMutation({
    mutationFn: () => ok(api.POST('/v1/instances/{id}/reinstall', { params: { path: { id: i.meta.id ?? '' } }, body })),
    onSuccess: (now) => {
      client.setQueryData(['Instance', 'one', i.meta.id], now);
      onClose();
    },
  });
  const all = images.data?.items ?? [];
  const own = all.find((x) => x.meta.id === i.spec.image)?.meta.name ?? i.spec.image ?? '';
  // An app has its own image.
  const others = i.spec.app ? [] : all.filter((x) => x.meta.id !== i.spec.image && !x.meta.deletedAt && !isMedium(x));
  const stored = restorable(backups.data?.items ?? [], volumes.isSuccess ? volumes.data.items : []);
  const named = [...others, ...stored].find((o) => o.meta.id === id)?.meta.name;
  return (
    <FormDialog
      title={t('one.reinstallTitle', { name: i.meta.name })}
      help={t(kind === 'backup' ? 'one.restoreHelp' : 'one.reinstallHelp')}
      action={t('one.reinstall')}
      danger
      disabled={typed !== i.meta.name}
      busy={act.isPending}
      error={act.error}
      schema="InstanceReinstall"
      body={body}
      onSubmit={act.mutate}
      onClose={onClose}
    >
      <ErrorAlert error={images.error ?? backups.error ?? volumes.error} />
      <Field id="reinstall-source" label={t('one.reinstallFrom')} path={kind || 'image'}>
        <FormSelect id="reinstall-source" value={source} onChange={(_, v) => setSource(v)}>
          <FormSelectOption value="" label={own ? t('one.reinstallOwn', { image: own }) : t('one.reinstallBlank')} />
          {others.length > 0 && (
            <FormSelectOptionGroup label={t('new.images')}>
              {others.map((x) => (
                <FormSelectOption key={x.meta.id} value={`image:${x.meta.id}`} label={x.meta.name} />
              ))}
            </FormSelectOptionGroup>
          )}
          {stored.length > 0 && (
            <FormSelectOptionGroup label={t('one.backups')}>
              {stored.map((b) => (
                <FormSelectOption
                  key={b.meta.id}
                  value={`backup:${b.meta.id}`}
                  label={`${b.meta.name} (${formatTime(b.meta.createdAt, language)})`}
                />
              ))}
            </FormSelectOptionGroup>
          )}
        </FormSelect>
      </Field>
      <TextField
        id="confirm-name"
        label={t('one.deleteConfirm', { name: i.meta.name })}
        value={typed}
        onChange={setTyped}
      />
      <Same
        cli={asCommand(['instance', 'reinstall', i.meta.name], kind ? { [kind]: named } : {})}
        curl={asCurl('POST', `/v1/instances/${i.meta.id}/reinstall`, body)}
      />
    </FormDialog>
  );
}
