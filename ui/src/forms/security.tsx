// Which roles need a second factor, and who would be asked for one; whether support needs consent; whether tunnels are
// encrypted.
import { Alert, Button } from '@patternfly/react-core';
import { Link } from 'wouter';
import { useWithoutFactor, type SecuritySettings } from '../api/access';
import { securitySettings } from '../api/resource';
import type { Role } from '../api/session';
import { useText } from '../i18n';
import { asCommand } from '../lib/shell';
import { CheckField } from '../parts/check-field';
import { CheckGroup } from '../parts/check-group';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Form } from '../parts/form';
import { Same } from '../parts/same';

/** In the order of the API. */
const roles = ['operator', 'reseller', 'admin', 'member', 'viewer', 'billing'] as const satisfies Role[];

type Fields = Record<Role | 'consent' | 'encrypt', boolean>;

const formOf = (s: SecuritySettings | undefined) =>
  ({
    ...Object.fromEntries(roles.map((r) => [r, s?.requireSecondFactor?.includes(r) ?? false])),
    consent: s?.requireSupportConsent ?? false,
    encrypt: s?.encryptTunnels ?? false,
  }) as Fields;

const bodyOf = (s: SecuritySettings | undefined, f: Fields): SecuritySettings => ({
  ...s, // what the form does not show stays
  requireSecondFactor: roles.filter((r) => f[r]),
  requireSupportConsent: f.consent,
  encryptTunnels: f.encrypt,
});

/** Asked warns of the users who would have to set up a second factor; without any it renders nothing. */
function Asked({ roles }: { roles: readonly Role[] }) {
  const { t, count } = useText();
  const found = useWithoutFactor(roles);
  if (found.length === 0) return null;
  return (
    <Alert component="p" variant="warning" isInline title={t('sec.asked')}>
      <ul>
        {found.map(({ role, total, names }) => (
          <li key={role}>
            <Link href={`/access-review?kind=User&role=${role}&finding=no-second-factor`}>
              {t(`role.${role}`)}: {count('sec.without', total)}
            </Link>{' '}
            ({total > names.length ? `${names.join(', ')}, …` : names.join(', ')})
          </li>
        ))}
      </ul>
    </Alert>
  );
}

export function SecurityForm({ settings }: { settings: SecuritySettings }) {
  const { t } = useText();
  const edit = useEdit<SecuritySettings, Fields>({
    of: securitySettings,
    object: settings,
    fields: formOf,
    body: bodyOf,
  });
  const chosen = roles.filter((r) => edit.form[r]);
  const labelOf = (f: keyof Fields) =>
    f === 'consent' ? t('sgr.require') : f === 'encrypt' ? t('sec.encrypt') : t(`role.${f}`);
  return (
    <Form schema="SecuritySettings" body={edit.body} busy={edit.busy} error={edit.error} onSubmit={edit.submit}>
      {edit.saved && <Alert component="p" variant="success" isInline isLiveRegion title={t('sec.saved')} />}
      <Conflict edit={edit} label={labelOf} />
      <CheckGroup
        id="sec-roles"
        label={t('sec.roles')}
        help={t('sec.rolesHelp')}
        path="requireSecondFactor"
        options={roles.map((r) => ({ value: r, label: t(`role.${r}`) }))}
        chosen={chosen}
        set={(now) => roles.forEach((r) => edit.form[r] !== now.includes(r) && edit.set(r)(now.includes(r)))}
      />
      <Asked roles={chosen} />
      <CheckField
        id="sec-consent"
        label={t('sgr.require')}
        help={t('sgr.requireHelp')}
        path="requireSupportConsent"
        checked={edit.form.consent}
        onChange={edit.set('consent')}
      />
      <CheckField
        id="sec-encrypt"
        label={t('sec.encrypt')}
        help={t('sec.encryptHelp')}
        path="encryptTunnels"
        checked={edit.form.encrypt}
        onChange={edit.set('encrypt')}
      />
      <div>
        <Button type="submit" isLoading={edit.busy} isDisabled={edit.busy}>
          {t('cust.save')}
        </Button>
      </div>
      <Same
        cli={asCommand(['security-settings', 'set', '--require-second-factor', chosen.join(',')], {
          [`require-support-consent=${edit.form.consent}`]: true,
          [`encrypt-tunnels=${edit.form.encrypt}`]: true,
        })}
        curl={edit.curl}
      />
    </Form>
  );
}
