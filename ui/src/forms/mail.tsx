// How the cluster sends mail. The password can be written but not read: an empty field keeps it.
import { Alert, Button, FormFieldGroup, FormFieldGroupHeader } from '@patternfly/react-core';
import type { MailSettings } from '../api/mail';
import { mail } from '../api/resource';
import { useText, type Key } from '../i18n';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

const labels = {
  enabled: 'mail.enabled',
  server: 'mail.server',
  port: 'mail.port',
  security: 'mail.security',
  user: 'mail.user',
  password: 'mail.password',
  sender: 'mail.sender',
  portalURL: 'mail.portal',
  language: 'mail.language',
  alertsTo: 'mail.alertsTo',
  bouncesServer: 'mail.bouncesServer',
  bouncesSecurity: 'mail.security',
  bouncesPort: 'mail.port',
  bouncesUser: 'mail.user',
  bouncesPassword: 'mail.password',
  bouncesMailbox: 'mail.bouncesMailbox',
} as const satisfies Record<string, Key>;

type Fields = Record<Exclude<keyof typeof labels, 'enabled'>, string> & { enabled: boolean };

const formOf = (s: MailSettings | undefined): Fields => ({
  enabled: s?.enabled ?? false,
  server: s?.server ?? '',
  port: s?.port ? String(s.port) : '',
  security: s?.security ?? 'starttls',
  user: s?.user ?? '',
  password: '',
  sender: s?.sender ?? '',
  portalURL: s?.portalURL || location.origin,
  language: s?.language ?? 'en',
  alertsTo: s?.alertsTo?.join(', ') ?? '',
  bouncesServer: s?.bounces?.server ?? '',
  bouncesSecurity: s?.bounces?.security ?? 'tls',
  bouncesPort: s?.bounces?.port ? String(s.bounces.port) : '',
  bouncesUser: s?.bounces?.user ?? '',
  bouncesPassword: '',
  bouncesMailbox: s?.bounces?.mailbox ?? '',
});

/** Without a server no mailbox is read. */
const bouncesOf = (f: Fields): MailSettings['bounces'] =>
  f.bouncesServer.trim() === ''
    ? undefined
    : {
        server: f.bouncesServer.trim(),
        security: f.bouncesSecurity as MailSettings['security'] & ('tls' | 'starttls'),
        port: Number(f.bouncesPort) || undefined,
        user: f.bouncesUser.trim(),
        password: f.bouncesPassword || undefined,
        mailbox: f.bouncesMailbox.trim() || undefined,
      };

const bodyOf = (s: MailSettings | undefined, f: Fields): MailSettings => ({
  revision: s?.revision,
  enabled: f.enabled,
  server: f.server.trim(),
  port: Number(f.port) || undefined,
  security: f.security as MailSettings['security'],
  user: f.user.trim(),
  password: f.password || undefined,
  sender: f.sender.trim(),
  portalURL: f.portalURL.trim(),
  language: f.language as MailSettings['language'],
  perMinute: s?.perMinute,
  alertsTo: f.alertsTo.split(/[\s,;]+/).filter((x) => x !== ''),
  bounces: bouncesOf(f),
});

export function MailForm({ settings }: { settings: MailSettings }) {
  const { t } = useText();
  const edit = useEdit<MailSettings, Fields>({
    of: mail,
    object: settings,
    fields: formOf,
    body: bodyOf,
    secrets: { password: 'PASSWORD', 'bounces.password': 'MAILBOX_PASSWORD' },
  });
  const { form } = edit;
  const set = (name: Exclude<keyof Fields, 'enabled'>) => (v: string) => edit.set(name)(v);
  const text = (name: Exclude<keyof Fields, 'enabled' | 'security' | 'language' | 'bouncesSecurity'>) => ({
    id: `mail-${name}`,
    label: t(labels[name]),
    value: form[name],
    onChange: set(name),
    path: name.replace(/^bounces(.)/, (_, first: string) => `bounces.${first.toLowerCase()}`),
  });
  // A port belongs to a security: another security uses its default port.
  const secure = (v: string) => (set('security')(v), edit.set('port')(''));
  return (
    <Form schema="MailSettings" body={edit.body} busy={edit.busy} error={edit.error} onSubmit={edit.submit}>
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('mail.saved')} />}
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <CheckField
        id="mail-enabled"
        label={t('mail.enabled')}
        path="enabled"
        checked={form.enabled}
        onChange={edit.set('enabled')}
      />
      <TextField {...text('server')} required={form.enabled} />
      <SelectField
        id="mail-security"
        label={t('mail.security')}
        value={form.security}
        onChange={secure}
        path="security"
        options={[
          ['starttls', t('mail.starttls')],
          ['tls', t('mail.tls')],
          ['none', t('mail.none')],
        ]}
      />
      <TextField {...text('port')} type="number" help={t('mail.portHelp')} />
      <TextField {...text('user')} help={t('mail.userHelp')} />
      <TextField
        {...text('password')}
        type="password"
        autoComplete="new-password"
        help={settings.hasPassword ? t('mail.passwordKept') : undefined}
      />
      <TextField {...text('sender')} type="email" required={form.enabled} help={t('mail.senderHelp')} />
      <TextField {...text('portalURL')} type="url" required={form.enabled} help={t('mail.portalHelp')} />
      <SelectField
        id="mail-language"
        label={t('mail.language')}
        help={t('mail.languageHelp')}
        value={form.language}
        onChange={set('language')}
        path="language"
        options={[
          ['en', 'English'],
          ['de', 'Deutsch'],
        ]}
      />
      <TextField {...text('alertsTo')} help={t('mail.alertsToHelp')} />
      <FormFieldGroup
        header={
          <FormFieldGroupHeader
            titleText={{ text: t('mail.bounces'), id: 'mail-bounces' }}
            titleDescription={t('mail.bouncesHelp')}
          />
        }
      >
        <TextField {...text('bouncesServer')} help={t('mail.bouncesServerHelp')} />
        <SelectField
          id="mail-bouncesSecurity"
          label={t('mail.security')}
          value={form.bouncesSecurity}
          onChange={(v) => (set('bouncesSecurity')(v), edit.set('bouncesPort')(''))}
          path="bounces.security"
          options={[
            ['tls', t('mail.tls')],
            ['starttls', t('mail.starttls')],
          ]}
        />
        <TextField {...text('bouncesPort')} type="number" help={t('mail.bouncesPortHelp')} />
        <TextField {...text('bouncesUser')} required={form.bouncesServer !== ''} />
        <TextField
          {...text('bouncesPassword')}
          type="password"
          autoComplete="new-password"
          help={settings.bounces?.hasPassword ? t('mail.passwordKept') : undefined}
        />
        <TextField {...text('bouncesMailbox')} help={t('mail.bouncesMailboxHelp')} />
      </FormFieldGroup>
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same curl={edit.curl} />
    </Form>
  );
}
