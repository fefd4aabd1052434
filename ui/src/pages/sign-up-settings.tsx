import { Card, CardBody } from '@patternfly/react-core';
import { useSignUpSettings } from '../api/sign-up';
import { SignUpSettingsForm } from '../forms/sign-up-settings';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';

export function SignUpSettingsPage() {
  const { t } = useText();
  const query = useSignUpSettings();
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('sus.title')}>
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">{t('sus.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.data && (
          <Card>
            <CardBody>
              <SignUpSettingsForm settings={query.data} />
            </CardBody>
          </Card>
        )}
      </div>
    </PageBody>
  );
}
