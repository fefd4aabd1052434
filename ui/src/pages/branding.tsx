import { Card, CardBody } from '@patternfly/react-core';
import { useBranding } from '../api/branding';
import { Loading } from '../parts/loading';
import { BrandingForm, LogoForm } from '../forms/branding';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { PageBody } from '../parts/page';

export function BrandingPage() {
  const { t } = useText();
  const query = useBranding();
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('brand.title')}>
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">{t('brand.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.data && (
          <>
            <Card>
              <CardBody>
                <BrandingForm branding={query.data} />
              </CardBody>
            </Card>
            <Card>
              <CardBody>
                <LogoForm />
              </CardBody>
            </Card>
          </>
        )}
      </div>
    </PageBody>
  );
}
