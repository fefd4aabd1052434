// Support grants: an organization creates and revokes its own; operators and resellers see those that they have.
import { Button } from '@patternfly/react-core';
import { HeadsetIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { useOrganizationNames } from '../api/cluster';
import { collections } from '../api/collection';
import { may, type Session } from '../api/session';
import { grantValid, revokeSupportGrant, type SupportGrant } from '../api/support';
import { CreateSupportGrant } from '../forms/support-grant';
import { useText } from '../i18n';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useRemoval } from '../parts/removal';
import { Time } from '../parts/time';
import { ToneLabel } from '../parts/tone';

export function SupportGrants({ session }: { session: Session }) {
  const { t } = useText();
  const staff = may(session, 'reseller');
  const own = session.organization; // only it can consent for itself
  const organizations = useOrganizationNames(staff).data?.items ?? [];
  const list = useListing(collections.supportGrants, { sort: '-spec.expiresAt' });
  const [creating, setCreating] = useState(false);
  const revocation = useRemoval<SupportGrant>({
    remove: revokeSupportGrant,
    title: (name) => `${t('sgr.revoke')}: ${name}`,
    help: t('sgr.revokeHelp'),
    action: t('sgr.revoke'),
    untyped: true,
  });
  const owns = (g: SupportGrant) => g.meta.organization === own;
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
            Boolean(own) && owns(g) && { text: t('sgr.revoke'), danger: true, run: () => revocation.ask(g) },
          ]}
          bulk={own ? [revocation.bulk(owns)] : undefined}
          empty={<Empty title={t('sgr.empty')} help={t(own ? 'sgr.emptyHelp' : 'sgr.emptyStaff')} icon={HeadsetIcon} />}
        />
      </div>
      {creating && own && <CreateSupportGrant organization={own} onClose={() => setCreating(false)} />}
      {revocation.dialog}
    </PageBody>
  );
}
