// How the cluster sends mail. The password can be written but not read: an empty field keeps it.
import { Alert, Button, Checkbox } from '@patternfly/react-core';
import type { MailSettings } from '../api/mail';
import { mail } from '../api/resource';
import { useText, type Key } from '../i18n';
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
});

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
});

export function MailForm({ settings }: { settings: MailSettings }) {
  const { t } = useText();
  const edit = useEdit<MailSettings, Fields>({
    of: mail,
    object: settings,
    fields: formOf,
    body: bodyOf,
    secrets: { password: 'PASSWORD' },
  });
  const { form } = edit;
  const set = (name: Exclude<keyof Fields, 'enabled'>) => (v: string) => edit.set(name)(v);
  const text = (name: Exclude<keyof Fields, 'enabled' | 'security' | 'language'>) => ({
    id: `mail-${name}`,
    label: t(labels[name]),
    value: form[name],
    onChange: set(name),
    path: name,
  });
  // A port belongs to a security: another security uses its default port.
  const secure = (v: string) => (set('security')(v), edit.set('port')(''));
  return (
    <Form schema="MailSettings" body={edit.body} busy={edit.busy} error={edit.error} onSubmit={edit.submit}>
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('mail.saved')} />}
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <Checkbox
        id="mail-enabled"
        label={t('mail.enabled')}
        isChecked={form.enabled}
        onChange={(_, v) => edit.set('enabled')(v)}
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
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same curl={edit.curl} />
    </Form>
  );
}
