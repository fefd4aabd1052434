import { Button, FormSelect, FormSelectOption } from '@patternfly/react-core';
import { CameraIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { may, type Session } from '../../api/session';
import { mostChoices, useVolumes, type Volume } from '../../api/storage';
import { useText } from '../../i18n';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, useProjectListing } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useProject } from '../../parts/project';
import { SnapshotList } from './snapshot-list';
import { TakeSnapshot } from './volume-dialogs';
import { useMadeStates } from '../../parts/facets';
import { collections } from '../../api/collection';

/** ChooseVolume selects the volume for a new snapshot. */
function ChooseVolume({
  volumes,
  onChosen,
  onClose,
}: {
  volumes: Volume[];
  onChosen: (v: Volume) => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const [id, setId] = useState(volumes[0]?.meta.id ?? '');
  const chosen = volumes.find((v) => v.meta.id === id);
  return (
    <FormDialog
      title={t('snap.take')}
      action={t('common.continue')}
      busy={false}
      error={null}
      disabled={!chosen}
      onSubmit={() => chosen && onChosen(chosen)}
      onClose={onClose}
    >
      <Field id="snap-volume" label={t('snap.of')}>
        <FormSelect id="snap-volume" value={id} onChange={(_, v) => setId(v)}>
          {volumes.map((v) => (
            <FormSelectOption
              key={v.meta.id}
              value={v.meta.id}
              label={v.spec.root ? t('snap.volumeRoot', { name: v.meta.name }) : v.meta.name}
            />
          ))}
        </FormSelect>
      </Field>
    </FormDialog>
  );
}

export function Snapshots({ session }: { session: Session }) {
  const { t } = useText();
  const { project } = useProject();
  const list = useProjectListing(collections.snapshots, { facets: useMadeStates() });
  const volumes = useVolumes({ project, limit: mostChoices }).data?.items ?? [];
  const ready = volumes.filter((v) => v.status?.phase === 'Ready' && !v.meta.deletedAt);
  const [choosing, setChoosing] = useState(false);
  const [of, setOf] = useState<Volume | null>(null);
  const take = may(session, 'member') && ready.length > 0 && (
    <Button onClick={() => setChoosing(true)}>{t('snap.take')}</Button>
  );
  return (
    <PageBody title={t('snap.title')} actions={take}>
      <SnapshotList
        session={session}
        list={list}
        volumes={volumes}
        empty={
          <Empty
            title={t('snap.empty')}
            help={ready.length > 0 ? t('snap.emptyHelp') : t('snap.emptyNoVolume')}
            icon={CameraIcon}
            action={take}
          />
        }
      />
      {choosing && (
        <ChooseVolume
          volumes={ready}
          onChosen={(v) => (setChoosing(false), setOf(v))}
          onClose={() => setChoosing(false)}
        />
      )}
      {of && <TakeSnapshot volume={of} onClose={() => setOf(null)} />}
    </PageBody>
  );
}
