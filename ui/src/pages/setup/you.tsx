// The operator's own password, and one-time codes.
import { Alert, Button, Form, Label } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../../api/client';
import { atField, elsewhere } from '../../api/fields';
import { useText } from '../../i18n';
import { Copyable } from '../../parts/copyable';
import { ErrorAlert } from '../../parts/error';
import { TextField } from '../../parts/text-field';

export function YouStep({ totp, email }: { totp: boolean; email: string }) {
  const { t } = useText();
  const [form, setForm] = useState({ old: '', new: '' });
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  // The answer begins a new session, whose cookie takes the old one's place.
  const change = useMutation({
    mutationFn: () => ok(api.POST('/v1/password', { body: form })),
    onSuccess: () => setForm({ old: '', new: '' }),
  });
  return (
    <>
      <Form onSubmit={(e) => (e.preventDefault(), !change.isPending && change.mutate())}>
        <ErrorAlert error={elsewhere(change.error, ['old', 'new'])} />
        {change.isSuccess && (
          <Alert component="p" variant="success" isInline isPlain isLiveRegion title={t('setup.passwordChanged')} />
        )}
        <input type="text" autoComplete="username" value={email} hidden readOnly />
        <TextField
          id="password-old"
          type="password"
          autoComplete="current-password"
          label={t('setup.passwordOld')}
          error={atField(change.error, 'old')}
          value={form.old}
          onChange={set('old')}
          required
        />
        <TextField
          id="password-new"
          type="password"
          autoComplete="new-password"
          label={t('setup.passwordNew')}
          help={t('setup.passwordNewHelp')}
          error={atField(change.error, 'new')}
          value={form.new}
          onChange={set('new')}
          required
        />
        <div>
          <Button type="submit" variant="secondary" isLoading={change.isPending} isDisabled={change.isPending}>
            {t('setup.passwordChange')}
          </Button>
        </div>
      </Form>
      {totp ? (
        <p>
          <Label color="green">{t('setup.youTotp')}</Label>
        </p>
      ) : (
        <>
          <p>{t('setup.youNoTotp')}</p>
          <Copyable label="basalt" text="basalt totp enable" />
        </>
      )}
    </>
  );
}
