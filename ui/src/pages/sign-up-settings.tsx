// Sign-up: an operator sets that of the cluster's portal, a reseller that of its own.
import { Card, CardBody } from '@patternfly/react-core';
import { may, type Session } from '../api/session';
import { useSignUpSettings } from '../api/sign-up';
import { SignUpSettingsForm } from '../forms/sign-up-settings';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';

export function SignUpSettingsPage({ session }: { session: Session }) {
  const { t } = useText();
  const reseller = may(session, 'operator') ? undefined : session.organization;
  const query = useSignUpSettings(reseller);
  if (query.isPending) return <Loading />;
  return (
    <PageBody title={t('sus.title')}>
      <div className="basalt-stack basalt-form">
        <p className="basalt-note">{t(reseller ? 'sus.helpReseller' : 'sus.help')}</p>
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.data && (
          <Card>
            <CardBody>
              <SignUpSettingsForm settings={query.data} reseller={reseller} />
            </CardBody>
          </Card>
        )}
      </div>
    </PageBody>
  );
}
