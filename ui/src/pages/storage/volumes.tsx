import { Button } from '@patternfly/react-core';
import { HddIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { may, type Session } from '../../api/session';
import { useVolumes } from '../../api/storage';
import { useText } from '../../i18n';
import { Empty, useListing } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { useProject } from '../../parts/project';
import { CreateVolume } from './create-volume';
import { VolumeList } from './volume-list';

export function Volumes({ session }: { session: Session }) {
  const { t } = useText();
  const { project } = useProject();
  const listing = useListing(project);
  const [creating, setCreating] = useState(false);
  const query = useVolumes({ project, ...listing.query });
  const create = may(session, 'member') && <Button onClick={() => setCreating(true)}>{t('vol.create')}</Button>;
  return (
    <PageBody title={t('vol.title')} actions={create}>
      <VolumeList
        session={session}
        label={t('vol.title')}
        query={query}
        pages={listing.pages}
        filter={listing.filter}
        empty={
          <Empty
            title={t('vol.empty')}
            help={create ? t('vol.emptyHelp') : t('vol.emptyViewer')}
            icon={HddIcon}
            action={create}
          />
        }
      />
      {creating && <CreateVolume onClose={() => setCreating(false)} />}
    </PageBody>
  );
}
