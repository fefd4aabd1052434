// Support grants: an organization creates and revokes its own; operators and resellers see those that they have.
import { Button } from '@patternfly/react-core';
import { HeadsetIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { useOrganizationNames } from '../api/cluster';
import { collections } from '../api/collection';
import { may, type Session } from '../api/session';
import { grantValid, revokeSupportGrant, type SupportGrant } from '../api/support';
import { CreateSupportGrant } from '../forms/support-grant';
import { useText } from '../i18n';
import { Confirm } from '../parts/confirm';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { Time } from '../parts/time';
import { ToneLabel } from '../parts/tone';

export function SupportGrants({ session }: { session: Session }) {
  const { t } = useText();
  const staff = may(session, 'reseller');
  const own = session.organization; // only it can consent for itself
  const organizations = useOrganizationNames(staff).data?.items ?? [];
  const list = useListing(collections.supportGrants, { sort: '-spec.expiresAt' });
  const [creating, setCreating] = useState(false);
  const [going, setGoing] = useState<SupportGrant | null>(null);
  const create = own && <Button onClick={() => setCreating(true)}>{t('sgr.create')}</Button>;
  const nameOf = (id: string | undefined) => organizations.find((o) => o.meta.id === id)?.meta.name ?? id ?? '–';
  const state = (g: SupportGrant) => t(grantValid(g) ? 'sgr.valid' : 'sgr.expired');
  const columns: Column<SupportGrant>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (g) => g.meta.name },
    ...(staff
      ? [
          {
            id: 'org',
            sort: 'organization',
            title: t('audit.organization'),
            cell: (g: SupportGrant) => nameOf(g.meta.organization),
          },
        ]
      : []),
    {
      id: 'state',
      title: t('common.state'),
      value: state,
      cell: (g) => <ToneLabel tone={grantValid(g) ? 'good' : 'off'} text={state(g)} />,
    },
    {
      id: 'ends',
      sort: 'spec.expiresAt',
      title: t('sgr.ends'),
      value: (g) => g.spec.expiresAt,
      cell: (g) => <Time at={g.spec.expiresAt} />,
    },
    { id: 'reason', sort: 'spec.reason', title: t('sgr.reason'), cell: (g) => g.spec.reason || '–' },
  ];
  return (
    <PageBody title={t('sgr.title')} actions={create}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('sgr.help')}</p>
        <ObjectList
          name="support-grants"
          label={t('sgr.title')}
          columns={columns}
          list={list}
          keyOf={(g) => g.meta.id ?? g.meta.name}
          actions={(g) => [
            Boolean(own) &&
              g.meta.organization === own && { text: t('sgr.revoke'), danger: true, run: () => setGoing(g) },
          ]}
          empty={<Empty title={t('sgr.empty')} help={t(own ? 'sgr.emptyHelp' : 'sgr.emptyStaff')} icon={HeadsetIcon} />}
        />
      </div>
      {creating && own && <CreateSupportGrant organization={own} onClose={() => setCreating(false)} />}
      {going && <Revoke grant={going} onClose={() => setGoing(null)} />}
    </PageBody>
  );
}

function Revoke({ grant, onClose }: { grant: SupportGrant; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => revokeSupportGrant(grant),
    onSuccess: () => {
      void client.invalidateQueries({ queryKey: ['SupportGrant', 'list'] });
      onClose();
    },
  });
  return (
    <Confirm
      title={`${t('sgr.revoke')}: ${grant.meta.name}`}
      help={t('sgr.revokeHelp')}
      action={t('sgr.revoke')}
      danger
      busy={revoke.isPending}
      error={revoke.error}
      onConfirm={() => revoke.mutate()}
      onClose={onClose}
    />
  );
}
