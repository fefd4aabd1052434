import { Card, CardBody } from '@patternfly/react-core';
import { useTaxSettings } from '../api/taxes';
import { TaxSettingsForm } from '../forms/tax-settings';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';

export function TaxSettingsPage() {
  const { t } = useText();
  const query = useTaxSettings();
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('tax.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('tax.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.data && (
          <Card>
            <CardBody>
              <TaxSettingsForm settings={query.data} />
            </CardBody>
          </Card>
        )}
      </div>
    </PageBody>
  );
}
