// By which authority certificates are requested.
import { Alert, Button } from '@patternfly/react-core';
import type { ACMESettings } from '../api/acme';
import { acmeSettings } from '../api/resource';
import { useText, type Key } from '../i18n';
import { asCommand } from '../lib/shell';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

const labels = {
  enabled: 'acme.enabled',
  directoryURL: 'acme.directory',
  acceptTerms: 'acme.terms',
  email: 'acme.email',
} as const satisfies Record<string, Key>;

interface Fields {
  enabled: boolean;
  directoryURL: string;
  acceptTerms: boolean;
  email: string;
}

const formOf = (s: ACMESettings | undefined): Fields => ({
  enabled: s?.enabled ?? false,
  directoryURL: s?.directoryURL ?? '',
  acceptTerms: s?.acceptTerms ?? false,
  email: s?.email ?? '',
});

const bodyOf = (s: ACMESettings | undefined, f: Fields): ACMESettings => ({
  revision: s?.revision,
  enabled: f.enabled,
  directoryURL: f.directoryURL.trim(),
  acceptTerms: f.acceptTerms,
  email: f.email.trim(),
});

export function ACMEForm({ settings }: { settings: ACMESettings }) {
  const { t } = useText();
  const edit = useEdit<ACMESettings, Fields>({ of: acmeSettings, object: settings, fields: formOf, body: bodyOf });
  const { form } = edit;
  // Another authority has other terms.
  const direct = (v: string) => (edit.set('directoryURL')(v), edit.set('acceptTerms')(false));
  return (
    <Form schema="ACMESettings" body={edit.body} busy={edit.busy} error={edit.error} onSubmit={edit.submit}>
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('acme.saved')} />}
      <Conflict edit={edit} label={(f) => t(labels[f])} />
      <CheckField
        id="acme-enabled"
        label={t('acme.enabled')}
        help={t('acme.enabledHelp')}
        path="enabled"
        checked={form.enabled}
        onChange={edit.set('enabled')}
      />
      <TextField
        id="acme-directory"
        type="url"
        label={t('acme.directory')}
        help={t('acme.directoryHelp')}
        path="directoryURL"
        value={form.directoryURL}
        onChange={direct}
        required={form.enabled}
      />
      <CheckField
        id="acme-terms"
        label={t('acme.terms')}
        help={t('acme.termsHelp')}
        path="acceptTerms"
        checked={form.acceptTerms}
        onChange={edit.set('acceptTerms')}
      />
      <TextField
        id="acme-email"
        type="email"
        label={t('acme.email')}
        help={t('acme.emailHelp')}
        path="email"
        value={form.email}
        onChange={edit.set('email')}
      />
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same
        cli={asCommand(['acme-settings', 'set', form.enabled ? '--enable' : '--disable'], {
          directory: form.directoryURL.trim(),
          [`accept-terms=${form.acceptTerms}`]: true,
          email: form.email.trim(),
        })}
        curl={edit.curl}
      />
    </Form>
  );
}
