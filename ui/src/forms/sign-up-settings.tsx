// How people create accounts by themselves. The captcha's secret can be written but not read: an empty field keeps it.
import { Alert, Button, FormSection } from '@patternfly/react-core';
import { Link } from 'wouter';
import { usePriceBooks } from '../api/customers';
import { useMailSettings } from '../api/mail';
import { signUpSettingsOf } from '../api/resource';
import type { SignUpSettings } from '../api/sign-up';
import { useText, type Key } from '../i18n';
import { decimal, parseMicros } from '../lib/amount';
import { isSize, limitsOf, quotaForm, quotaKey, quotas, wrong, type Quota, type QuotaForm } from '../lib/quota';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

const labels = {
  termsURL: 'sus.termsURL',
  termsVersion: 'sus.termsVersion',
  allowedDomains: 'sus.allowed',
  blockedDomains: 'sus.blocked',
  priceBook: 'sus.priceBook',
  creditMicros: 'sus.creditName',
  captcha: 'sus.captcha',
  siteKey: 'sus.siteKey',
  captchaSecret: 'sus.secret',
  verifyURL: 'sus.verifyURL',
} as const satisfies Record<string, Key>;

type Text = keyof typeof labels;
type Fields = { enabled: boolean; resellers: boolean } & Record<Text, string> & QuotaForm;

const formOf = (s: SignUpSettings | undefined): Fields => ({
  enabled: s?.enabled ?? false,
  resellers: s?.resellers ?? false,
  termsURL: s?.termsURL ?? '',
  termsVersion: s?.termsVersion ?? '',
  allowedDomains: s?.allowedDomains?.join(', ') ?? '',
  blockedDomains: s?.blockedDomains?.join(', ') ?? '',
  priceBook: s?.priceBook ?? '',
  creditMicros: s?.creditMicros ? decimal(s.creditMicros) : '',
  captcha: s?.captcha ?? '',
  siteKey: s?.siteKey ?? '',
  captchaSecret: '',
  verifyURL: s?.verifyURL ?? '',
  ...quotaForm(s?.quota),
});

const words = (text: string) => text.split(/[\s,;]+/).filter((w) => w !== '');

const bodyOf = (s: SignUpSettings | undefined, f: Fields, currency: string): SignUpSettings => {
  const creditMicros = f.creditMicros.trim() === '' ? 0 : (parseMicros(f.creditMicros) ?? NaN);
  return {
    revision: s?.revision,
    enabled: f.enabled,
    resellers: f.resellers,
    termsURL: f.termsURL.trim(),
    termsVersion: f.termsVersion.trim(),
    allowedDomains: words(f.allowedDomains),
    blockedDomains: words(f.blockedDomains),
    priceBook: f.priceBook,
    creditMicros,
    currency: creditMicros === 0 ? '' : currency,
    quota: wrong(f).length === 0 ? limitsOf(f, s?.quota) : {},
    captcha: (f.captcha || undefined) as SignUpSettings['captcha'],
    siteKey: f.captcha ? f.siteKey.trim() : undefined,
    verifyURL: f.captcha ? f.verifyURL.trim() : undefined,
    captchaSecret: (f.captcha && f.captchaSecret.trim()) || undefined,
  };
};

const providers: [string, string][] = [
  ['hcaptcha', 'hCaptcha'],
  ['turnstile', 'Cloudflare Turnstile'],
  ['recaptcha', 'reCAPTCHA'],
];

/** NoMail warns that nobody can sign up while the cluster does not send mail. */
function NoMail() {
  const { t } = useText();
  const mail = useMailSettings().data;
  return mail && !mail.enabled ? (
    <Alert component="p" variant="warning" isInline title={t('sus.noMail')}>
      <Link href="/mail">{t('mail.title')}</Link>
    </Alert>
  ) : null;
}

/** SignUpSettingsForm edits the settings of a reseller's portal, or of the cluster's. */
export function SignUpSettingsForm({ settings, reseller }: { settings: SignUpSettings; reseller?: string }) {
  const { t } = useText();
  const books = usePriceBooks().data?.items ?? [];
  const currencyOf = (book: string) =>
    books.find((b) => (book ? b.meta.id === book : b.meta.name === 'default'))?.spec.currency ??
    settings.currency ??
    '';
  const edit = useEdit<SignUpSettings, Fields>({
    of: signUpSettingsOf(reseller),
    object: settings,
    fields: formOf,
    body: (s, f) => bodyOf(s, f, currencyOf(f.priceBook)),
    secrets: { captchaSecret: 'SECRET' },
  });
  const { form } = edit;
  const set = (name: Text | Quota) => (v: string) => edit.set(name)(v);
  const text = (name: Text) => ({
    id: `sus-${name}`,
    label: t(labels[name]),
    value: form[name],
    onChange: set(name),
    path: name as string,
  });
  const quotaLabel = (q: Quota) => (isSize(q) ? t('cust.quotaGib', { name: t(quotaKey(q)) }) : t(quotaKey(q)));
  const label = (f: keyof Fields) =>
    f === 'enabled' || f === 'resellers' ? t(`sus.${f}`) : f in labels ? t(labels[f as Text]) : quotaLabel(f as Quota);
  // The address and the secret belong to a provider.
  const choose = (v: string) => (set('captcha')(v), set('verifyURL')(''), set('captchaSecret')(''));
  return (
    <Form
      schema="SignUpSettings"
      long
      body={edit.body}
      wrong={wrong(form).map((q) => ({ path: `quota.${q}`, text: t('cust.quotaWrong') }))}
      busy={edit.busy}
      error={edit.error}
      onSubmit={edit.submit}
    >
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('sus.saved')} />}
      <Conflict edit={edit} label={label} />
      <CheckField
        id="sus-enabled"
        label={t('sus.enabled')}
        path="enabled"
        checked={form.enabled}
        onChange={(on) => edit.set('enabled')(on)}
      />
      {form.enabled && !reseller && <NoMail />}
      {reseller && !settings.allowed && <Alert component="p" variant="warning" isInline title={t('sus.notAllowed')} />}
      <CheckField
        id="sus-resellers"
        label={t('sus.resellers')}
        help={t('sus.resellersHelp')}
        path="resellers"
        checked={form.resellers}
        onChange={(on) => edit.set('resellers')(on)}
      />
      <FormSection title={t('sus.who')} titleElement="h2">
        <TextField {...text('termsURL')} type="url" help={t('sus.termsURLHelp')} />
        <TextField {...text('termsVersion')} help={t('sus.termsVersionHelp')} required={form.termsURL.trim() !== ''} />
        <TextField {...text('allowedDomains')} help={t('sus.allowedHelp')} />
        <TextField {...text('blockedDomains')} help={t('sus.blockedHelp')} />
      </FormSection>
      <FormSection title={t('sus.gets')} titleElement="h2">
        <SelectField
          {...text('priceBook')}
          options={[
            ['', t('sus.defaultBook')],
            ...books.map((b): [string, string] => [b.meta.id ?? '', `${b.meta.name} (${b.spec.currency})`]),
          ]}
        />
        <TextField
          {...text('creditMicros')}
          label={t('sus.credit', { currency: currencyOf(form.priceBook) })}
          help={t('sus.creditHelp')}
        />
        <p>{t('sus.quotaHelp')}</p>
        <div className="basalt-columns">
          {quotas.map((q) => (
            <TextField
              key={q}
              id={`sus-${q}`}
              label={quotaLabel(q)}
              value={form[q]}
              path={`quota.${q}`}
              onChange={set(q)}
            />
          ))}
        </div>
      </FormSection>
      <FormSection title={t('sus.captcha')} titleElement="h2">
        <SelectField
          {...text('captcha')}
          label={t('sus.provider')}
          help={t('sus.captchaHelp')}
          onChange={choose}
          options={[['', t('common.none')], ...providers]}
        />
        {form.captcha && (
          <>
            <TextField {...text('siteKey')} required />
            <TextField
              {...text('captchaSecret')}
              type="password"
              autoComplete="new-password"
              required={!settings.hasCaptchaSecret || form.captcha !== (settings.captcha ?? '')}
              help={t('sus.secretHelp')}
            />
            <TextField {...text('verifyURL')} type="url" help={t('sus.verifyURLHelp')} />
          </>
        )}
      </FormSection>
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same curl={edit.curl} />
    </Form>
  );
}
