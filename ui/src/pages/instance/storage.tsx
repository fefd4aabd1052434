// An instance's disks and their snapshots.
import { Button, Card, CardBody, CardTitle, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { CameraIcon, HddIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Instance } from '../../api/client';
import { may, type Session } from '../../api/session';
import { attach, mostChoices, useSnapshots, useVolumes, type Volume } from '../../api/storage';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { placeOf } from '../../lib/volume';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty } from '../../parts/list';
import { CreateVolume } from '../storage/create-volume';
import { SnapshotList } from '../storage/snapshot-list';
import { AttachSame } from '../storage/volume-dialogs';
import { VolumeList } from '../storage/volume-list';
import { Media } from './media';

function AttachVolume({ instance, volumes, onClose }: { instance: Instance; volumes: Volume[]; onClose: () => void }) {
  const { t, language } = useText();
  const client = useQueryClient();
  const [chosen, choose] = useState('');
  const id = chosen || volumes[0]?.meta.id || '';
  const send = useMutation({
    mutationFn: () => attach(id, instance.meta.id ?? ''),
    onSuccess: () => (onClose(), client.invalidateQueries({ queryKey: ['Volume', 'list'] })),
  });
  return (
    <FormDialog
      title={t('one.attachVolume')}
      help={t('one.attachVolumeHelp')}
      action={t('vol.attach')}
      busy={send.isPending}
      disabled={!id}
      error={send.error}
      body={{ spec: { instance: instance.meta.id } }}
      onSubmit={send.mutate}
      onClose={onClose}
    >
      <Field id="attach-volume" label={t('snap.of')} help={id ? undefined : t('one.noFreeVolume')} path="spec.instance">
        <FormSelect id="attach-volume" value={id} onChange={(_, v) => choose(v)}>
          {volumes.map((v) => (
            <FormSelectOption
              key={v.meta.id}
              value={v.meta.id}
              label={`${v.meta.name}, ${formatBytes(v.spec.sizeBytes ?? 0, language)}`}
            />
          ))}
        </FormSelect>
      </Field>
      <AttachSame volume={volumes.find((v) => v.meta.id === id)} instance={instance} />
    </FormDialog>
  );
}

export function Storage({ session, instance }: { session: Session; instance: Instance }) {
  const { t } = useText();
  const { id, project } = instance.meta;
  const all = useVolumes({ project, limit: mostChoices });
  const volumes = all.data?.items ?? [];
  const own = volumes.filter((v) => placeOf(v).instance === id);
  const free = volumes.filter((v) => placeOf(v).instance === '' && !v.meta.deletedAt);
  const snapshots = useSnapshots({ project, limit: mostChoices });
  const ownSnapshots = snapshots.data?.items.filter((s) => own.some((v) => v.meta.id === s.spec.volume)) ?? [];
  const [dialog, setDialog] = useState<'attach' | 'create' | null>(null);
  const close = () => setDialog(null);
  return (
    <div className="basalt-stack">
      <Card>
        <CardTitle component="h2">{t('one.disks')}</CardTitle>
        <CardBody className="basalt-stack">
          {may(session, 'member') && !instance.meta.deletedAt && (
            <div className="basalt-actions">
              <Button variant="secondary" onClick={() => setDialog('attach')}>
                {t('one.attachVolume')}
              </Button>
              <Button variant="link" onClick={() => setDialog('create')}>
                {t('vol.create')}
              </Button>
            </div>
          )}
          <VolumeList
            session={session}
            label={t('one.disks')}
            query={{ ...all, data: all.data && { items: own } }}
            ofInstance
            empty={<Empty title={t('vol.empty')} help={t('vol.emptyHelp')} icon={HddIcon} />}
          />
        </CardBody>
      </Card>
      <Media session={session} instance={instance} />
      <Card>
        <CardTitle component="h2">{t('snap.title')}</CardTitle>
        <CardBody>
          <SnapshotList
            session={session}
            query={{ ...snapshots, data: snapshots.data && { items: ownSnapshots } }}
            volumes={own}
            empty={<Empty title={t('snap.empty')} help={t('snap.emptyHelp')} icon={CameraIcon} />}
          />
        </CardBody>
      </Card>
      {dialog === 'attach' && <AttachVolume instance={instance} volumes={free} onClose={close} />}
      {dialog === 'create' && <CreateVolume project={project} instance={id} onClose={close} />}
    </div>
  );
}
