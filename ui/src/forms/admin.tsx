// Creates an organization's first administrator, who adds other users.
import { Alert, Button, ClipboardCopy, TextInput } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { useText } from '../i18n';
import { formatTime } from '../lib/format';
import { passwordLink } from '../lib/address';
import { asCurl, quote } from '../lib/shell';
import { Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';

type User = Schemas['User'];

/** adminOf returns the user to send. */
export const adminOf = (email: string, organization: string): User => ({
  kind: 'User',
  meta: { name: email.trim().toLowerCase(), organization },
  spec: { grants: [{ role: 'admin', organization }] },
});

/** useAddAdmin creates a user; the response contains the link. */
export function useAddAdmin(onMade: (u: User) => void) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (u: User) => ok(api.POST('/v1/users', { body: u })),
    onSuccess: (u) => (void client.invalidateQueries({ queryKey: ['User', 'list'] }), onMade(u)),
  });
}

export function AddAdmin({
  organization,
  name,
  onMade,
  onClose,
}: {
  organization: string;
  name: string;
  onMade: (u: User) => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const [email, setEmail] = useState('');
  const create = useAddAdmin(onMade);
  const user = adminOf(email, organization);
  return (
    <FormDialog
      title={t('cust.adminAdd')}
      help={t('cust.adminHelp')}
      action={t('mem.add')}
      busy={create.isPending}
      error={create.error}
      schema="User"
      body={user}
      onSubmit={() => create.mutate(user)}
      onClose={onClose}
    >
      <Field id="admin-email" label={t('mem.email')} path="meta.name" required>
        <TextInput
          id="admin-email"
          type="email"
          value={email}
          onChange={(_, v) => setEmail(v)}
          isRequired
          autoComplete="off"
        />
      </Field>
      <Same
        cli={`basalt user create ${quote(user.meta.name || 'E-MAIL')} --organization ${name} --grant admin@${name}`}
        curl={asCurl('POST', '/v1/users', user)}
      />
    </FormDialog>
  );
}

/** LinkReady shows a new user's link, once. */
export function LinkReady({ user, onClose }: { user: User; onClose: () => void }) {
  const { t, language } = useText();
  if (!user.link) return null;
  return (
    <Alert component="h2" variant="success" isInline isLiveRegion title={t('mem.ready', { name: user.meta.name })}>
      <div className="basalt-stack">
        <p>{t('mem.linkHelp', { until: formatTime(user.link.expiresAt, language) })}</p>
        <ClipboardCopy
          isReadOnly
          hoverTip={t('common.copy')}
          clickTip={t('common.copied')}
          textAriaLabel={t('mem.link')}
        >
          {passwordLink(user.link.token)}
        </ClipboardCopy>
        <div>
          <Button variant="secondary" onClick={onClose}>
            {t('common.close')}
          </Button>
        </div>
      </div>
    </Alert>
  );
}
