// Requests a link by e-mail that sets a new password. The response is the same whether the user exists or not.
import { Button, Card, CardBody, CardHeader, TextInput, Title } from '@patternfly/react-core';
import { useEffect, useState } from 'react';
import { productOf, useBranding } from '../api/branding';
import { api, ok } from '../api/client';
import { useText } from '../i18n';
import { Brand, Support } from '../parts/brand';
import { Form } from '../parts/form';
import { Field } from '../parts/field';

export function ForgotPassword() {
  const { t, language } = useText();
  const product = productOf(useBranding().data);
  const [form, setForm] = useState({ email: '', organization: '' });
  const [error, setError] = useState<unknown>(null);
  const [sent, setSent] = useState('');
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    document.title = `${t('forgot.title')} · ${product}`;
  }, [t, product]);
  const set = (name: keyof typeof form) => (_: unknown, value: string) => setForm((f) => ({ ...f, [name]: value }));
  const submit = async () => {
    setBusy(true);
    setError(null);
    try {
      const email = form.email.trim();
      const organization = form.organization.trim();
      await ok(
        api.POST('/v1/password/reset', {
          body: { email, ...(organization && { organization }) },
          headers: { 'Accept-Language': language },
        }),
      );
      setSent(email);
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
              {t('forgot.title')}
            </Title>
          </CardHeader>
          <CardBody>
            {sent ? (
              <p role="status">{t('forgot.sent', { email: sent })}</p>
            ) : (
              <Form body={form} busy={busy} error={error} onSubmit={() => void submit()}>
                <p>{t('forgot.help')}</p>
                <Field id="email" label={t('signIn.email')} path="email" required>
                  <TextInput
                    id="email"
                    type="email"
                    autoComplete="username"
                    isRequired
                    value={form.email}
                    onChange={set('email')}
                  />
                </Field>
                <Field id="of" label={t('signIn.organization')} help={t('signIn.ofHelp')} path="organization">
                  <TextInput
                    id="of"
                    autoComplete="organization"
                    value={form.organization}
                    onChange={set('organization')}
                  />
                </Field>
                <Button type="submit" isBlock isLoading={busy} isDisabled={busy}>
                  {t('forgot.submit')}
                </Button>
              </Form>
            )}
            <p className="basalt-note">
              <a href="#/">{t('forgot.back')}</a>
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
