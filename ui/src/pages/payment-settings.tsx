import { Alert, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { usePaymentSettings } from '../api/payments';
import { PaymentSettingsForm } from '../forms/payment-settings';
import { useText } from '../i18n';
import { Copyable } from '../parts/copyable';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';

export function PaymentSettingsPage() {
  const { t } = useText();
  const query = usePaymentSettings();
  if (query.isPending) return <Loading />;
  const { data } = query;
  return (
    <PageBody title={t('pay.settings')}>
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">{t('pay.settingsHelp')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {data && (
          <>
            {data.status?.lastError && (
              <Alert component="p" variant="warning" isInline title={t('pay.failing')}>
                {data.status.lastError}
              </Alert>
            )}
            <Card>
              <CardTitle component="h2">{t('pay.provider')}</CardTitle>
              <CardBody>
                <PaymentSettingsForm settings={data} />
              </CardBody>
            </Card>
            <Card>
              <CardTitle component="h2">{t('pay.endpoint')}</CardTitle>
              <CardBody className="basalt-stack">
                <p className="basalt-note">{t('pay.endpointHelp')}</p>
                <Copyable label={t('pay.endpoint')} text={`${location.origin}/v1/payment-events`} />
              </CardBody>
            </Card>
          </>
        )}
      </div>
    </PageBody>
  );
}
