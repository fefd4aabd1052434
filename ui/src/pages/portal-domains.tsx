// The host names of resellers' portals: resellers request them, operators approve them.
import { Button, Title } from '@patternfly/react-core';
import { GlobeIcon } from '@patternfly/react-icons';
import { useMemo, useState } from 'react';
import { collections } from '../api/collection';
import { useOrganizations } from '../api/customers';
import {
  approvePortalDomain,
  certificateOf,
  deletePortalDomain,
  requestedOf,
  type PortalDomain,
} from '../api/portal-domains';
import { RequestPortalDomain, SetCertificate } from '../forms/portal-domain';
import { useText } from '../i18n';
import { formatDay } from '../lib/format';
import type { Bulk } from '../parts/list-bulk';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { ToneLabel } from '../parts/tone';

export function PortalDomains({ operator }: { operator: boolean }) {
  const { t, language } = useText();
  const [requesting, setRequesting] = useState(false);
  const [certifying, setCertifying] = useState<PortalDomain | null>(null);
  const list = useListing(collections.portalDomains);
  const organizations = useOrganizations({ limit: 1000 });
  const bulk = useMemo<Bulk<PortalDomain>[]>(() => {
    const decide = (approved: boolean): Bulk<PortalDomain> => ({
      id: approved ? 'approve' : 'withdraw',
      text: t(approved ? 'dom.approve' : 'dom.withdraw'),
      help: t(approved ? 'dom.approveHelp' : 'dom.withdrawHelp'),
      applies: (d) => (d.spec.approved ?? false) !== approved,
      run: (d) => approvePortalDomain(d, approved),
    });
    return [
      ...(operator ? [decide(true), decide(false)] : []),
      { id: 'delete', text: t('common.delete'), help: t('dom.deleteHelp'), danger: true, run: deletePortalDomain },
    ];
  }, [t, operator]);
  const certificate = (d: PortalDomain) => {
    const state = certificateOf(d);
    const requested = requestedOf(d).expiresAt;
    if (state !== 'valid' && requested) return t('dom.certRequested', { day: formatDay(requested, language) });
    if (state === 'none') return t('dom.certNone');
    const day = formatDay(d.spec.expiresAt ?? '', language);
    return state === 'expired' ? t('dom.certExpired', { day }) : t('dom.certUntil', { day });
  };
  const columns: Column<PortalDomain>[] = [
    { id: 'name', sort: 'name', title: t('dom.name'), cell: (d) => d.meta.name },
    {
      id: 'organization',
      sort: 'organization',
      title: t('dom.organization'),
      cell: (d) =>
        organizations.data?.items.find((o) => o.meta.id === d.meta.organization)?.meta.name ?? d.meta.organization,
    },
    {
      id: 'state',
      sort: 'spec.approved',
      title: t('common.state'),
      cell: (d) => (
        <ToneLabel
          tone={d.spec.approved ? 'good' : 'warning'}
          text={t(d.spec.approved ? 'dom.approved' : 'dom.requested')}
        />
      ),
    },
    {
      id: 'certificate',
      sort: 'spec.expiresAt',
      title: t('dom.cert'),
      cell: (d) => (
        <>
          {certificate(d)}{' '}
          <Button
            variant="link"
            isInline
            aria-label={t('dom.certSetOf', { name: d.meta.name })}
            onClick={() => setCertifying(d)}
          >
            {t('dom.certSet')}
          </Button>
          {requestedOf(d).problem && <p className="basalt-note">{requestedOf(d).problem}</p>}
        </>
      ),
    },
  ];
  return (
    <div className="basalt-stack">
      <Title headingLevel="h2" size="lg">
        {t('dom.title')}
      </Title>
      <p className="basalt-note">{t(operator ? 'dom.helpOperator' : 'dom.help')}</p>
      <div className="basalt-actions">
        <Button variant="secondary" onClick={() => setRequesting(true)}>
          {t('dom.request')}
        </Button>
      </div>
      <ObjectList
        label={t('dom.title')}
        name="portal-domains"
        columns={columns}
        list={list}
        bulk={bulk}
        nameOf={(d) => d.meta.name}
        keyOf={(d) => d.meta.id ?? d.meta.name}
        empty={<Empty title={t('dom.empty')} help={t('dom.emptyHelp')} icon={GlobeIcon} />}
      />
      {requesting && <RequestPortalDomain operator={operator} onClose={() => setRequesting(false)} />}
      {certifying && <SetCertificate domain={certifying} onClose={() => setCertifying(null)} />}
    </div>
  );
}
