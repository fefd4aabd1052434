// Creates the key that a directory uses for SCIM.
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { useConnectDirectory } from '../api/groups';
import { useText } from '../i18n';
import { asCommand, asCurl } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { TextField } from '../parts/text-field';

const day = 86_400_000; // ms

interface Props {
  organization: string;
  onMade: (k: Schemas['APIKey']) => void;
  onClose: () => void;
}

export function ConnectDirectory({ organization, onMade, onClose }: Props) {
  const { t } = useText();
  const create = useConnectDirectory(onMade);
  const [form, setForm] = useState({ name: 'directory', days: '365' });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const [opened] = useState(() => Date.now());
  const days = Math.min(Math.max(1, Math.floor(Number(form.days)) || 1), 3650);
  const body: Schemas['APIKey'] = {
    kind: 'APIKey',
    meta: { name: form.name.trim(), organization },
    spec: { role: 'admin', scopes: ['scim:write'], expiresAt: new Date(opened + days * day).toISOString() },
  };
  return (
    <FormDialog
      title={t('grp.connect')}
      help={t('grp.connectHelp')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="APIKey"
      body={body}
      onSubmit={() => create.mutate(body)}
      onClose={onClose}
    >
      <TextField
        id="directory-name"
        label={t('common.name')}
        help={t('new.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={set('name')}
        required
      />
      <TextField
        id="directory-days"
        label={t('grp.days')}
        path="spec.expiresAt"
        type="number"
        value={form.days}
        onChange={set('days')}
      />
      <Same
        cli={asCommand(['api-key', 'create', body.meta.name || 'NAME'], {
          organization,
          role: 'admin',
          scope: 'scim:write',
          'expires-in': `${days * 24}h`,
        })}
        curl={asCurl('POST', '/v1/api-keys', body)}
      />
    </FormDialog>
  );
}
