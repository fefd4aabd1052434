// The taxes that a seller charges: an operator may choose a reseller, which is a seller, too.
import { Card, CardBody } from '@patternfly/react-core';
import { useLocation } from 'wouter';
import { useOrganizations } from '../api/customers';
import { may, type Session } from '../api/session';
import { useTaxSettings } from '../api/taxes';
import { TaxSettingsForm } from '../forms/tax-settings';
import { useText } from '../i18n';
import { ErrorAlert } from '../parts/error';
import { Loading } from '../parts/loading';
import { PageBody } from '../parts/page';
import { SelectField } from '../parts/text-field';

function Seller({ id }: { id: string }) {
  const { t } = useText();
  const [, go] = useLocation();
  const organizations = useOrganizations({ limit: 1000 });
  const options = (organizations.data?.items ?? []).map((o): [string, string] => [o.meta.id ?? '', o.meta.name]);
  return (
    <SelectField
      id="tax-of"
      label={t('tax.of')}
      help={t('tax.ofHelp')}
      value={id}
      onChange={(v) => go(v ? `/tax-settings/${v}` : '/tax-settings')}
      options={[['', t('tax.ofOperator')], ...options]}
    />
  );
}

export function TaxSettingsPage({ session, id }: { session: Session; id: string }) {
  const { t } = useText();
  const query = useTaxSettings(id || undefined);
  return (
    <PageBody title={t('tax.title')}>
      <div className="basalt-stack">
        <p className="basalt-note">{t('tax.help')}</p>
        {may(session, 'operator') && <Seller id={id} />}
        <ErrorAlert error={query.error} onRetry={() => void query.refetch()} />
        {query.isPending && <Loading />}
        {query.data && (
          <Card>
            <CardBody>
              <TaxSettingsForm settings={query.data} organization={id || undefined} />
            </CardBody>
          </Card>
        )}
      </div>
    </PageBody>
  );
}
