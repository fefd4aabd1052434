// Creating an account: first an address, to which a link is sent; the link opens this page with a token for the
// rest.
import { Button, Card, CardBody, CardHeader, Checkbox, TextInput, Title } from '@patternfly/react-core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, type ReactNode } from 'react';
import { productOf, useBranding } from '../api/branding';
import { api, ok, type Schemas } from '../api/client';
import { signedIn } from '../api/session';
import { useText } from '../i18n';
import { Brand, Support } from '../parts/brand';
import { Captcha, captchaPage } from '../parts/captcha';
import { ErrorAlert } from '../parts/error';
import { Field } from '../parts/field';
import { Form } from '../parts/form';
import { Loading } from '../parts/loading';
import { useToken } from '../parts/token';

type Info = Schemas['SignUpInfo'];

const leave = (to: string) => location.replace(to);

/** SignUp asks for an address, or with a token for the rest; to opens another page, and is replaced in tests. */
export function SignUp({ to = leave }: { to?: (address: string) => void }) {
  const { t } = useText();
  const product = productOf(useBranding().data);
  const token = useToken(`${location.pathname}#/sign-up`);
  const info = useQuery({
    queryKey: ['sign-up'],
    queryFn: ({ signal }) => ok(api.GET('/v1/sign-up', { signal })),
    retry: false,
  });
  useEffect(() => {
    document.title = `${t('signUp.title')} · ${product}`;
  }, [t, product]);
  if (info.isPending) return <Loading />;
  return (
    <div className="basalt-sign-in">
      <main>
        <Card>
          <CardHeader>
            <div className="basalt-brand">
              <Brand />
            </div>
            <Title headingLevel="h1" size="xl">
              {t('signUp.title')}
            </Title>
          </CardHeader>
          <CardBody>
            <ErrorAlert error={info.error} onRetry={() => void info.refetch()} />
            {info.data && <Step info={info.data} token={token} to={to} />}
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

function Step({ info, token, to }: { info: Info; token: string; to: (address: string) => void }): ReactNode {
  const { t } = useText();
  // A captcha runs third-party scripts, which only one page permits.
  const elsewhere = info.enabled && !token && !!info.captcha && location.pathname !== captchaPage;
  useEffect(() => {
    if (elsewhere) to(`${captchaPage}#/sign-up`);
  }, [elsewhere, to]);
  if (!info.enabled) return <p>{t('signUp.closed')}</p>;
  if (token) return <Finish info={info} token={token} />;
  if (elsewhere) return <Loading />;
  return <Ask info={info} />;
}

/** useSent runs one request, and keeps its result. */
function useSent() {
  const [error, setError] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const send = async (what: () => Promise<void>) => {
    setBusy(true);
    setError(null);
    try {
      await what();
    } catch (e) {
      setError(e);
    } finally {
      setBusy(false);
    }
  };
  return { error, busy, send };
}

function Ask({ info }: { info: Info }) {
  const { t, language } = useText();
  const [email, setEmail] = useState('');
  const [sent, setSent] = useState('');
  const [captcha, setCaptcha] = useState('');
  const [attempt, setAttempt] = useState(0);
  const { error, busy, send } = useSent();
  const submit = () =>
    send(async () => {
      try {
        await ok(
          api.POST('/v1/sign-up', {
            body: { email: email.trim(), ...(captcha && { captcha }) },
            headers: { 'Accept-Language': language },
          }),
        );
      } catch (e) {
        // A captcha can be used once.
        setCaptcha('');
        setAttempt((n) => n + 1);
        throw e;
      }
      setSent(email.trim());
    });
  if (sent) return <p role="status">{t('signUp.sent', { email: sent })}</p>;
  return (
    <Form body={{ email }} busy={busy} error={error} onSubmit={() => void submit()}>
      <p>{t('signUp.help')}</p>
      <Field id="email" label={t('signIn.email')} path="email" required>
        <TextInput
          id="email"
          type="email"
          autoComplete="username"
          isRequired
          value={email}
          onChange={(_, v) => setEmail(v)}
        />
      </Field>
      {info.captcha && (
        <Captcha key={attempt} provider={info.captcha} siteKey={info.siteKey ?? ''} onToken={setCaptcha} />
      )}
      <Button type="submit" isBlock isLoading={busy} isDisabled={busy || (!!info.captcha && !captcha)}>
        {t('signUp.submit')}
      </Button>
    </Form>
  );
}

function Finish({ info, token }: { info: Info; token: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const [form, setForm] = useState({ organization: '', displayName: '', password: '' });
  const [accepted, setAccepted] = useState(false);
  const { error, busy, send } = useSent();
  const set = (name: keyof typeof form) => (_: unknown, value: string) => setForm((f) => ({ ...f, [name]: value }));
  const submit = () =>
    send(async () => {
      const { password, ...names } = form;
      await ok(
        api.POST('/v1/sign-up/finish', {
          body: {
            token,
            password,
            organization: names.organization.trim(),
            displayName: names.displayName.trim(),
            ...(accepted && { terms: info.termsVersion }),
          },
        }),
      );
      location.replace('/#/');
      await signedIn(client);
    });
  return (
    <Form body={form} busy={busy} error={error} onSubmit={() => void submit()}>
      <Field
        id="organization"
        label={t('signIn.organization')}
        help={t('signUp.organizationHelp')}
        path="organization"

        required
      >
        <TextInput
          id="organization"
          autoComplete="organization"
          isRequired
          value={form.organization}
          onChange={set('organization')}
        />
      </Field>
      <Field id="display-name" label={t('signUp.name')} path="displayName">
        <TextInput id="display-name" autoComplete="name" value={form.displayName} onChange={set('displayName')} />
      </Field>
      <Field
        id="new-password"
        label={t('signIn.password')}
        help={t('signUp.passwordHelp')}
        path="password"

        required
      >
        <TextInput
          id="new-password"
          type="password"
          autoComplete="new-password"
          isRequired
          value={form.password}
          onChange={set('password')}
        />
      </Field>
      {info.termsVersion && (
        <Checkbox
          id="terms"
          isRequired
          label={
            <>
              {t('signUp.accept')}{' '}
              <a href={info.termsURL} target="_blank" rel="noreferrer">
                {t('signUp.terms', { version: info.termsVersion })}
              </a>
            </>
          }
          isChecked={accepted}
          onChange={(_, v) => setAccepted(v)}
        />
      )}
      <Button type="submit" isBlock isLoading={busy} isDisabled={busy || (!!info.termsVersion && !accepted)}>
        {t('signUp.create')}
      </Button>
    </Form>
  );
}
