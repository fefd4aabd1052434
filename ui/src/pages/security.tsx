import { Card, CardBody } from '@patternfly/react-core';
import { useSecuritySettings } from '../api/access';
import { SecurityForm } from '../forms/security';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';

export function SecurityPage() {
  const { t } = useText();
  const query = useSecuritySettings();
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('sec.title')}>
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">{t('sec.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.data && (
          <Card>
            <CardBody>
              <SecurityForm settings={query.data} />
            </CardBody>
          </Card>
        )}
      </div>
    </PageBody>
  );
}
