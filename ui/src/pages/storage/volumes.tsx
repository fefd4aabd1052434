import { Button } from '@patternfly/react-core';
import { HddIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { Empty, useProjectListing } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { CreateVolume } from './create-volume';
import { VolumeList } from './volume-list';
import { useMadeStates } from '../../parts/facets';
import { collections } from '../../api/collection';

export function Volumes({ session }: { session: Session }) {
  const { t } = useText();
  const list = useProjectListing(collections.volumes, { facets: useMadeStates() });
  const [creating, setCreating] = useState(false);
  const create = may(session, 'member') && <Button onClick={() => setCreating(true)}>{t('vol.create')}</Button>;
  return (
    <PageBody title={t('vol.title')} actions={create}>
      <VolumeList
        session={session}
        label={t('vol.title')}
        list={list}
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
