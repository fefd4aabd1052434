// The page of the link for a new or reset user (/#/password?token=…). The token can be used once, and is sent only
// with a password.
import { Button, Card, CardBody, CardHeader, TextInput, Title } from '@patternfly/react-core';
import { useEffect, useState } from 'react';
import { productOf, useBranding } from '../api/branding';
import { api, ok } from '../api/client';
import { useText } from '../i18n';
import { Brand } from '../parts/brand';
import { Form } from '../parts/form';
import { Field } from '../parts/field';
import { useToken } from '../parts/token';

const leave = () => location.replace('/#/');

export function SetPassword() {
  const { t } = useText();
  const product = productOf(useBranding().data);
  const token = useToken('/#/password');
  const [password, setPassword] = useState('');
  const [error, setError] = useState<unknown>(null);
  const [email, setEmail] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${t('password.title')} · ${product}`;
  }, [t, product]);
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      setEmail((await ok(api.POST('/v1/password/link', { body: { token, password } }))).email);
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  return (
    <div className="basalt-sign-in">
      <main>
        <Card>
          <CardHeader>
            <div className="basalt-brand">
              <Brand />
            </div>
            <Title headingLevel="h1" size="xl">
              {t('password.title')}
            </Title>
          </CardHeader>
          <CardBody>
            {email ? (
              <div className="basalt-stack">
                <p role="status">{t('password.done', { email })}</p>
                <Button isBlock onClick={leave}>
                  {t('signIn.submit')}
                </Button>
              </div>
            ) : (
              <Form body={{ password }} busy={busy} error={error} onSubmit={() => void submit()}>
                {/* Password managers look for a user name; only the server knows it, from the token. */}
                <input type="text" autoComplete="username" hidden readOnly />
                <Field id="new-password" label={t('password.new')} path="password" required>
                  <TextInput
                    id="new-password"
                    type="password"
                    autoComplete="new-password"
                    isRequired
                    value={password}
                    onChange={(_, v) => setPassword(v)}
                  />
                </Field>
                <Button type="submit" isBlock isLoading={busy} isDisabled={busy}>
                  {t('password.submit')}
                </Button>
              </Form>
            )}
          </CardBody>
        </Card>
      </main>
    </div>
  );
}
