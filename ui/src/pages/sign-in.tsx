// Password, then a second factor and a role, each when the API requests it. Or a passkey instead of both.
import { Button, Card, CardBody, CardHeader, Divider, TextInput, Title } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { productOf, useBranding } from '../api/branding';
import { api, asApiError, ok } from '../api/client';
import { useBeginLogin, useLoginProviders } from '../api/identity-providers';
import { passkeyAnswer } from '../api/passkeys';
import { signedIn } from '../api/session';
import { useText } from '../i18n';
import { keepFlow, redirectAddress } from '../lib/oidc';
import { askPasskey, cancelled, passkeysWork } from '../lib/passkey';
import { Brand, Support } from '../parts/brand';
import { Field } from '../parts/field';
import { Form } from '../parts/form';

type Step = 'password' | 'code' | 'which';

export function SignIn() {
  const { t } = useText();
  const product = productOf(useBranding().data);
  const client = useQueryClient();
  const providers = useLoginProviders();
  const signUp = useQuery({
    queryKey: ['sign-up'],
    queryFn: ({ signal }) => ok(api.GET('/v1/sign-up', { signal })),
    retry: false,
  });
  const [step, setStep] = useState<Step>('password');
  const [form, setForm] = useState({ email: '', password: '', totp: '', organization: '', project: '' });
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const code = useRef<HTMLInputElement>(null);
  const which = useRef<HTMLInputElement>(null);
  useEffect(() => {
    document.title = `${t('signIn.title')} · ${product}`;
  }, [t, product]);
  useEffect(() => (step === 'code' ? code : which).current?.focus(), [step]);
  const set = (name: keyof typeof form) => (_: unknown, value: string) => setForm((f) => ({ ...f, [name]: value }));

  // With a passkey: instead of the password and a code, or after the password.
  const [passkey, setPasskey] = useState<'alone' | 'second' | null>(null);
  const begin = async (by: typeof passkey) => {
    const { email, password, totp, ...where } = form;
    const given = Object.fromEntries(
      Object.entries(by ? where : { totp, ...where })
        .filter(([, v]) => v !== '')
        .map(([k, v]) => [k, v.trim()]),
    );
    if (by === 'alone') {
      const answer = await passkeyAnswer(askPasskey);
      return ok(api.POST('/v1/login/passkey/finish', { body: { ...answer, ...given } }));
    }
    const answer = by ? { passkey: await passkeyAnswer(askPasskey) } : {};
    return ok(api.POST('/v1/login', { body: { email: email.trim(), password, ...answer, ...given } }));
  };

  const submit = async (by: typeof passkey) => {
    setBusy(true);
    setError(null);
    setPasskey(by);
    try {
      await begin(by);
      await signedIn(client);
    } catch (e) {
      const { field } = asApiError(e);
      if ((field === 'totp' || field === 'passkey') && step === 'password' && !by) setStep('code');
      else if (field === 'organization' && step !== 'which') setStep('which');
      else if (e instanceof DOMException) setError(new Error(t(cancelled(e) ? 'pass.cancelled' : 'pass.failed')));
      else setError(e);
    } finally {
      setBusy(false);
    }
  };

  const external = useBeginLogin(({ url, flow }) => {
    keepFlow(flow);
    location.assign(url);
  });

  return (
    <div className="basalt-sign-in">
      <main>
        <Card>
          <CardHeader>
            <div className="basalt-brand">
              <Brand />
            </div>
            <Title headingLevel="h1" size="xl">
              {t('signIn.title')}
            </Title>
            <p className="basalt-note">{t('signIn.subtitle')}</p>
          </CardHeader>
          <CardBody>
            <Form
              body={form}
              busy={busy}
              error={error ?? external.error}
              onSubmit={() => void submit(step === 'which' ? passkey : null)}
            >
              {step === 'password' && (
                <>
                  <Field id="email" label={t('signIn.email')} path="email" required>
                    <TextInput
                      id="email"
                      type="email"
                      autoComplete="username"
                      value={form.email}
                      onChange={set('email')}
                    />
                  </Field>
                  <Field id="password" label={t('signIn.password')} path="password" required>
                    <TextInput
                      id="password"
                      type="password"
                      autoComplete="current-password"
                      value={form.password}
                      onChange={set('password')}
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
                </>
              )}
              {step === 'code' && (
                <Field id="totp" label={t('signIn.code')} help={t('signIn.codeHelp')} path="totp" required>
                  <TextInput
                    id="totp"
                    ref={code}
                    autoComplete="one-time-code"
                    value={form.totp}
                    onChange={set('totp')}
                  />
                </Field>
              )}
              {step === 'which' && (
                <>
                  <p>{t('signIn.whichHelp')}</p>
                  <Field id="organization" label={t('signIn.organization')} path="organization">
                    <TextInput id="organization" ref={which} value={form.organization} onChange={set('organization')} />
                  </Field>
                  <Field id="project" label={t('signIn.project')} path="project">
                    <TextInput id="project" value={form.project} onChange={set('project')} />
                  </Field>
                </>
              )}
              <Button type="submit" isBlock isLoading={busy} isDisabled={busy}>
                {step === 'code' ? t('signIn.verify') : t('signIn.submit')}
              </Button>
              {step !== 'which' && passkeysWork() && (
                <Button
                  variant="secondary"
                  isBlock
                  isDisabled={busy}
                  onClick={() => void submit(step === 'code' ? 'second' : 'alone')}
                >
                  {t('pass.signIn')}
                </Button>
              )}
              {step === 'password' && (
                <p className="basalt-note">
                  <a href="#/forgot">{t('signIn.forgot')}</a>
                  {signUp.data?.enabled && (
                    <>
                      {' · '}
                      <a href="#/sign-up">{t('signUp.title')}</a>
                    </>
                  )}
                </p>
              )}
              {step !== 'password' && (
                <Button
                  variant="link"
                  onClick={() => (
                    setStep('password'),
                    setError(null),
                    setForm((f) => ({ ...f, totp: '', password: '' }))
                  )}
                >
                  {t('signIn.back')}
                </Button>
              )}
              {step === 'password' && providers.data && (
                <>
                  <Divider />
                  <p className="basalt-note">
                    <a href="#/login">{t('signIn.byOrganization')}</a>
                  </p>
                  {providers.data.names.map((name) => (
                    <Button
                      key={name}
                      variant="secondary"
                      isBlock
                      isDisabled={external.isPending}
                      onClick={() => (setError(null), external.mutate({ provider: name, redirect: redirectAddress() }))}
                    >
                      {t('signIn.with', { name })}
                    </Button>
                  ))}
                </>
              )}
            </Form>
          </CardBody>
        </Card>
        <p className="basalt-support">
          <Support />
        </p>
      </main>
    </div>
  );
}
