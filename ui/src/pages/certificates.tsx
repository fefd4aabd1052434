// The certificates of the portals' host names, and how the cluster requests them.
import { Alert, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { GlobeIcon } from '@patternfly/react-icons';
import { Link } from 'wouter';
import { useACMESettings, type ACMESettings } from '../api/acme';
import { collections } from '../api/collection';
import { useOrganizations } from '../api/customers';
import { useMailSettings } from '../api/mail';
import type { PortalDomain } from '../api/portal-domains';
import { ACMEForm } from '../forms/acme';
import { useText } from '../i18n';
import { certificateState, type CertificateState, type NamedCertificate } from '../lib/certificate-state';
import { ErrorAlert } from '../parts/error';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';
import { Rows } from '../parts/rows';
import { Time } from '../parts/time';
import { ToneLabel, type Tone } from '../parts/tone';

const tones: Record<CertificateState, Tone> = {
  stored: 'good',
  issued: 'good',
  renewing: 'warning',
  requested: 'busy',
  failed: 'bad',
  limited: 'bad',
  expired: 'bad',
  waiting: 'busy',
  none: 'off',
};

function State({ of: c }: { of: NamedCertificate }) {
  const { t } = useText();
  return <ToneLabel tone={tones[c.state]} text={t(`acme.state.${c.state}`)} />;
}

/** Portal is the certificate of the cluster's own portal. */
function Portal({ settings: s }: { settings: ACMESettings }) {
  const { t } = useText();
  const address = useMailSettings().data?.portalURL ?? '';
  const c = certificateState(s.status, s.enabled ?? false, undefined);
  return (
    <Card>
      <CardTitle component="h2">{t('acme.portal')}</CardTitle>
      <CardBody className="basalt-stack">
        {address.startsWith('https://') ? (
          <p className="basalt-note">{t('acme.portalHelp')}</p>
        ) : (
          <Alert component="p" variant="warning" isInline title={t('acme.noAddress')}>
            <Link href="/mail">{t('mail.title')}</Link>
          </Alert>
        )}
        <Rows
          rows={[
            [t('dom.name'), s.status?.hostName ?? /^https:\/\/([^/:]+)/.exec(address)?.[1]],
            [t('common.state'), <State of={c} />],
            [t('acme.expires'), c.expiresAt && <Time at={c.expiresAt} />],
            [t('acme.next'), c.nextAt && <Time at={c.nextAt} />],
            [t('acme.problem'), c.problem],
          ]}
        />
      </CardBody>
    </Card>
  );
}

function Domains({ enabled }: { enabled: boolean }) {
  const { t } = useText();
  const list = useListing(collections.portalDomains);
  const organizations = useOrganizations({ limit: 1000 });
  const of = (d: PortalDomain) =>
    certificateState(d.status, enabled && (d.spec.approved ?? false), d.spec.certificate && d.spec.expiresAt);
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
      title: t('common.state'),
      cell: (d) =>
        d.spec.approved ? <State of={of(d)} /> : <ToneLabel tone="off" text={t('acme.state.unapproved')} />,
    },
    { id: 'expires', title: t('acme.expires'), cell: (d) => <Time at={of(d).expiresAt} /> },
    { id: 'next', title: t('acme.next'), cell: (d) => <Time at={of(d).nextAt} /> },
    { id: 'problem', title: t('acme.problem'), cell: (d) => of(d).problem ?? '–' },
  ];
  return (
    <Card>
      <CardTitle component="h2">{t('acme.domains')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">
          {t('acme.domainsHelp')} <Link href="/branding">{t('nav.branding')}</Link>
        </p>
        <ObjectList
          name="certificates"
          label={t('acme.domains')}
          columns={columns}
          list={list}
          keyOf={(d) => d.meta.id ?? d.meta.name}
          empty={<Empty title={t('dom.empty')} help={t('dom.emptyHelp')} icon={GlobeIcon} />}
        />
      </CardBody>
    </Card>
  );
}

export function CertificatesPage() {
  const { t } = useText();
  const query = useACMESettings();
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('acme.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('acme.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.data && (
          <>
            <Card>
              <CardTitle component="h2">{t('acme.settings')}</CardTitle>
              <CardBody>
                <ACMEForm settings={query.data} />
              </CardBody>
            </Card>
            <Portal settings={query.data} />
            <Domains enabled={query.data.enabled ?? false} />
          </>
        )}
      </div>
    </PageBody>
  );
}
