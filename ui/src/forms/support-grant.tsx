// Lets support into the instances of one's organization for a limited time.
import { useState } from 'react';
import { useCreateSupportGrant, type SupportGrant } from '../api/support';
import { useText } from '../i18n';
import { formatWait } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

const hour = 3_600_000; // ms

/** Hours that a grant lasts; the API's limit is 30 days. */
const durations = [1, 4, 24, 72, 168, 336] as const;

export function CreateSupportGrant({ organization, onClose }: { organization: string; onClose: () => void }) {
  const { t, language } = useText();
  const create = useCreateSupportGrant(onClose);
  const [form, setForm] = useState({ name: '', hours: '4', reason: '' });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const [opened] = useState(() => Date.now());
  const reason = form.reason.trim();
  const bodyAt = (from: number): SupportGrant => ({
    kind: 'SupportGrant',
    meta: { name: form.name.trim(), organization },
    spec: { expiresAt: new Date(from + Number(form.hours) * hour).toISOString(), ...(reason && { reason }) },
  });
  const body = bodyAt(opened);
  return (
    <FormDialog
      title={t('sgr.create')}
      help={t('sgr.help')}
      action={t('sgr.create')}
      busy={create.isPending}
      error={create.error}
      schema="SupportGrant"
      body={body}
      onSubmit={() => create.mutate(bodyAt)}
      onClose={onClose}
    >
      <TextField
        id="grant-name"
        label={t('common.name')}
        help={t('new.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={set('name')}
        required
      />
      <SelectField
        id="grant-lasts"
        label={t('sgr.lasts')}
        path="spec.expiresAt"
        value={form.hours}
        onChange={set('hours')}
        options={durations.map((h) => [String(h), formatWait(h * 3600, language)])}
      />
      <TextField
        id="grant-reason"
        label={t('sgr.reason')}
        help={t('sgr.reasonHelp')}
        path="spec.reason"
        value={form.reason}
        onChange={set('reason')}
      />
      <Same
        cli={asCommand(['support-grant', 'create', body.meta.name || 'NAME'], {
          'expires-in': `${form.hours}h`,
          reason: reason || undefined,
        })}
        curl={asCurl('POST', '/v1/support-grants', body)}
      />
    </FormDialog>
  );
}
