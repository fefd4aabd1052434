// Signs in with an identity provider of an organization, which is named in the address (/#/login/ORGANIZATION) or
// entered. Anybody can ask for the names of its providers.
import { Button, Card, CardBody, CardHeader, TextInput, Title } from '@patternfly/react-core';
import { useEffect, useState } from 'react';
import { productOf, useBranding } from '../api/branding';
import { useBeginLogin, useLoginProviders } from '../api/identity-providers';
import { useText } from '../i18n';
import { keepFlow, redirectAddress } from '../lib/oidc';
import { Brand, Support } from '../parts/brand';
import { ErrorAlert } from '../parts/error';
import { Field } from '../parts/field';
import { Form } from '../parts/form';

/** organizationIn returns the organization in the address of this page; RESELLER/CUSTOMER contains a slash. */
export const organizationIn = (path: string): string => {
  try {
    return decodeURIComponent(path.replace(/^\/login\/?/, ''));
  } catch {
    return ''; // not encoded as an address is
  }
};

function Providers({ organization }: { organization: string }) {
  const { t } = useText();
  const providers = useLoginProviders(organization);
  const begin = useBeginLogin(({ url, flow }) => {
    keepFlow(flow);
    location.assign(url);
  });
  const names = providers.data?.names;
  return (
    <div className="basalt-stack">
      {names?.length === 0 && <p role="status">{t('orgSignIn.none', { organization })}</p>}
      {names?.map((name) => (
        <Button
          key={name}
          isBlock
          isDisabled={begin.isPending}
          onClick={() => begin.mutate({ provider: name, organization, redirect: redirectAddress() })}
        >
          {t('signIn.with', { name })}
        </Button>
      ))}
      <ErrorAlert error={providers.error ?? begin.error} />
    </div>
  );
}

export function OrganizationSignIn({ path }: { path: string }) {
  const { t } = useText();
  const product = productOf(useBranding().data);
  const [entered, enter] = useState(organizationIn(path));
  const [organization, choose] = useState(entered);
  useEffect(() => {
    document.title = `${t('signIn.byOrganization')} · ${product}`;
  }, [t, product]);
  return (
    <div className="basalt-sign-in">
      <main>
        <Card>
          <CardHeader>
            <div className="basalt-brand">
              <Brand />
            </div>
            <Title headingLevel="h1" size="xl">
              {t('signIn.byOrganization')}
            </Title>
          </CardHeader>
          <CardBody>
            <Form body={{ organization: entered }} busy={false} error={null} onSubmit={() => choose(entered.trim())}>
              <Field
                id="organization"
                label={t('signIn.organization')}
                help={t('orgSignIn.help')}
                path="organization"
                required
              >
                <TextInput
                  id="organization"
                  autoComplete="organization"
                  isRequired
                  value={entered}
                  onChange={(_, value) => enter(value)}
                />
              </Field>
              <Button type="submit" isBlock variant={organization ? 'secondary' : 'primary'}>
                {t('orgSignIn.next')}
              </Button>
            </Form>
            {organization && <Providers key={organization} organization={organization} />}
            <p className="basalt-note">
              <a href="#/">{t('signIn.other')}</a>
            </p>
          </CardBody>
        </Card>
        <p className="basalt-support">
          <Support />
        </p>
      </main>
    </div>
  );
}
