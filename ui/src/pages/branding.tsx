// The name and appearance of the portal: an operator sets those of the cluster, a reseller its own.
import { Card, CardBody } from '@patternfly/react-core';
import { useBranding } from '../api/branding';
import { may, type Session } from '../api/session';
import { Loading } from '../parts/loading';
import { BrandingForm, LogoForm } from '../forms/branding';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { PageBody } from '../parts/page';
import { PortalDomains } from './portal-domains';

export function BrandingPage({ session }: { session: Session }) {
  const { t } = useText();
  const operator = may(session, 'operator');
  const reseller = operator ? undefined : session.organization;
  const query = useBranding(reseller);
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('brand.title')}>
      <div className="basalt-stack">
        <div className="basalt-stack basalt-form">
          <p className="basalt-note">{t(reseller ? 'brand.helpReseller' : 'brand.help')}</p>
          <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
          {query.data && (
            <>
              <Card>
                <CardBody>
                  <BrandingForm branding={query.data} reseller={reseller} />
                </CardBody>
              </Card>
              <Card>
                <CardBody>
                  <LogoForm reseller={reseller} />
                </CardBody>
              </Card>
            </>
          )}
        </div>
        <PortalDomains operator={operator} />
      </div>
    </PageBody>
  );
}
