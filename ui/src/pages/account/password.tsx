import { Alert, Button, Card, CardBody, CardTitle, TextInput } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../../api/client';
import { useText } from '../../i18n';
import { Form } from '../../parts/form';
import { Field } from '../../parts/field';

export function Password({ email }: { email: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const [form, setForm] = useState({ old: '', new: '' });
  const change = useMutation({
    mutationFn: () => ok(api.POST('/v1/password', { body: form })),
    onSuccess: () => (setForm({ old: '', new: '' }), client.invalidateQueries({ queryKey: ['Session', 'list'] })),
  });
  return (
    <Card>
      <CardTitle component="h2">{t('acc.password')}</CardTitle>
      <CardBody>
        <Form
          label={t('acc.password')}
          body={form}
          busy={change.isPending}
          error={change.error}
          onSubmit={change.mutate}
        >
          <p className="basalt-note">{t('acc.passwordHelp')}</p>
          {/* Password managers keep what belongs to a name. */}
          <input type="text" hidden readOnly autoComplete="username" value={email} />
          <Field id="acc-old" label={t('acc.old')} path="old" required>
            <TextInput
              id="acc-old"
              type="password"
              autoComplete="current-password"
              isRequired
              value={form.old}
              onChange={(_, v) => setForm((f) => ({ ...f, old: v }))}
            />
          </Field>
          <Field id="acc-new" label={t('acc.new')} help={t('acc.newHelp')} path="new" required>
            <TextInput
              id="acc-new"
              type="password"
              autoComplete="new-password"
              isRequired
              value={form.new}
              onChange={(_, v) => setForm((f) => ({ ...f, new: v }))}
            />
          </Field>
          <div role="status">
            {change.isSuccess && <Alert isInline component="p" variant="success" title={t('acc.changed')} />}
          </div>
          <div>
            <Button type="submit" isLoading={change.isPending} isDisabled={change.isPending}>
              {t('acc.change')}
            </Button>
          </div>
        </Form>
      </CardBody>
    </Card>
  );
}
