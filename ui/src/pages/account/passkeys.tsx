// Passkeys: adding takes the password and an authenticator, deleting the password.
import { Alert, Button, Card, CardBody, CardTitle, Label, TextInput } from '@patternfly/react-core';
import { KeyIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { addPasskey, passkeysKey, removePasskey, usePasskeys, type Passkey } from '../../api/passkeys';
import { sessionKey, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { cancelled, makePasskey, passkeysWork } from '../../lib/passkey';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { Time } from '../../parts/time';
import { RecoveryCodes } from './recovery-codes';

interface DialogProps {
  email: string;
  onClose: () => void;
}

function Add({ email, onAdded, onClose }: DialogProps & { onAdded: (codes: string[]) => void }) {
  const { t } = useText();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const add = useMutation({
    mutationFn: () => addPasskey(makePasskey, name.trim(), password),
    onSuccess: ({ codes }) => onAdded(codes ?? []),
  });
  const browser = add.error instanceof DOMException;
  return (
    <FormDialog
      title={t('pass.add')}
      help={t('pass.addHelp')}
      action={t('pass.add')}
      busy={add.isPending}
      error={browser ? null : add.error}
      body={{ name, password }}
      onSubmit={add.mutate}
      onClose={onClose}
    >
      {browser && (
        <Alert
          isInline
          isLiveRegion
          component="p"
          variant="danger"
          title={t(cancelled(add.error) ? 'pass.cancelled' : 'pass.failed')}
        />
      )}
      <input type="text" hidden readOnly autoComplete="username" value={email} />
      <Field id="pass-name" label={t('common.name')} help={t('pass.nameHelp')} path="name" required>
        <TextInput id="pass-name" isRequired autoComplete="off" value={name} onChange={(_, v) => setName(v)} />
      </Field>
      <Field id="pass-word" label={t('acc.old')} path="password" required>
        <TextInput
          id="pass-word"
          type="password"
          autoComplete="current-password"
          isRequired
          value={password}
          onChange={(_, v) => setPassword(v)}
        />
      </Field>
    </FormDialog>
  );
}

function Remove({ passkey, email, onRemoved, onClose }: DialogProps & { passkey: Passkey; onRemoved: () => void }) {
  const { t } = useText();
  const [password, setPassword] = useState('');
  const remove = useMutation({ mutationFn: () => removePasskey(passkey.id, password), onSuccess: onRemoved });
  return (
    <FormDialog
      title={t('pass.deleteTitle', { name: passkey.name })}
      help={t('pass.deleteHelp')}
      action={t('common.delete')}
      busy={remove.isPending}
      error={remove.error}
      body={{ password }}
      onSubmit={remove.mutate}
      onClose={onClose}
    >
      <input type="text" hidden readOnly autoComplete="username" value={email} />
      <Field id="pass-off" label={t('acc.old')} path="password" required>
        <TextInput
          id="pass-off"
          type="password"
          autoComplete="current-password"
          isRequired
          value={password}
          onChange={(_, v) => setPassword(v)}
        />
      </Field>
    </FormDialog>
  );
}

export function Passkeys({ email }: { email: string }) {
  const { t } = useText();
  const client = useQueryClient();
  const query = usePasskeys();
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState<Passkey | null>(null);
  const [codes, setCodes] = useState<string[]>([]);
  const changed = (by: number) => {
    void client.invalidateQueries({ queryKey: passkeysKey });
    client.setQueryData(
      sessionKey,
      (s: Session | null | undefined) => s && { ...s, passkeys: Math.max(0, (s.passkeys ?? 0) + by) },
    );
  };
  const site = query.data?.site;
  const columns: Column<Passkey>[] = [
    {
      id: 'name',
      title: t('common.name'),
      cell: (p) => (
        <span className="basalt-labels">
          {p.name}
          {p.synced && <Label isCompact>{t('pass.synced')}</Label>}
          {site && p.site !== site && (
            <Label isCompact color="orange">
              {t('pass.elsewhere', { name: p.site })}
            </Label>
          )}
        </span>
      ),
    },
    { id: 'created', title: t('pass.added'), value: (p) => p.createdAt, cell: (p) => <Time at={p.createdAt} /> },
    { id: 'used', title: t('acc.used'), value: (p) => p.usedAt, cell: (p) => <Time at={p.usedAt} /> },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (p) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${p.name}`}
          onClick={() => setRemoving(p)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <Card>
      <CardTitle component="h2">{t('pass.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p className="basalt-note">{t('pass.help')}</p>
        {codes.length > 0 && <RecoveryCodes codes={codes} onClose={() => setCodes([])} />}
        {query.data?.unavailable ? (
          <Alert isInline component="p" variant="info" title={t('pass.unavailable')} />
        ) : (
          !passkeysWork() && <Alert isInline component="p" variant="info" title={t('pass.browser')} />
        )}
        <ObjectList
          name="passkeys"
          label={t('pass.title')}
          columns={columns}
          query={query}
          keyOf={(p) => p.id}
          empty={<Empty title={t('pass.empty')} help={t('pass.emptyHelp')} icon={KeyIcon} />}
        />
        {site && passkeysWork() && (
          <div>
            <Button variant="secondary" onClick={() => setAdding(true)}>
              {t('pass.add')}
            </Button>
          </div>
        )}
      </CardBody>
      {adding && (
        <Add
          email={email}
          onAdded={(c) => (setAdding(false), setCodes(c), changed(1))}
          onClose={() => setAdding(false)}
        />
      )}
      {removing && (
        <Remove
          email={email}
          passkey={removing}
          onRemoved={() => (setRemoving(null), changed(-1))}
          onClose={() => setRemoving(null)}
        />
      )}
    </Card>
  );
}
