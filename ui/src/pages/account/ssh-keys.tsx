import { Button, Card, CardBody, CardTitle, TextArea, TextInput } from '@patternfly/react-core';
import { KeyIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { addSSHKey, removeSSHKey, useSSHKeys, type SSHKey } from '../../api/ssh';
import { useText } from '../../i18n';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Time } from '../../parts/time';

function AddKey({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const { t } = useText();
  const [name, setName] = useState('');
  const [key, setKey] = useState('');
  const add = useMutation({ mutationFn: () => addSSHKey(name.trim(), key.trim()), onSuccess: onMade });
  return (
    <FormDialog
      title={t('ssh.add')}
      action={t('ssh.add')}
      busy={add.isPending}
      error={add.error}
      schema="SSHKey"
      body={{ kind: 'SSHKey', meta: { name: name.trim() }, spec: { publicKey: key.trim() } }}
      onSubmit={add.mutate}
      onClose={onClose}
    >
      <Field id="ssh-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput id="ssh-name" value={name} onChange={(_, v) => setName(v)} isRequired autoComplete="off" />
      </Field>
      <Field id="ssh-key" label={t('ssh.key')} help={t('ssh.keyHelp')} path="spec.publicKey" required>
        <TextArea
          id="ssh-key"
          rows={3}
          resizeOrientation="vertical"
          value={key}
          onChange={(_, v) => setKey(v)}
          isRequired
          spellCheck={false}
        />
      </Field>
    </FormDialog>
  );
}

export function SSHKeys() {
  const { t } = useText();
  const client = useQueryClient();
  const query = useSSHKeys();
  const [adding, setAdding] = useState(false);
  const again = () => client.invalidateQueries({ queryKey: ['SSHKey', 'list'] });
  const removal = useRemoval<SSHKey>({
    remove: removeSSHKey,
    title: (name) => t('ssh.deleteTitle', { name }),
    help: t('ssh.deleteHelp'),
    untyped: true,
  });
  const columns: Column<SSHKey>[] = [
    { id: 'name', title: t('common.name'), cell: (k) => k.meta.name },
    { id: 'type', title: t('ssh.type'), cell: (k) => k.spec.type },
    { id: 'fingerprint', title: t('ssh.fingerprint'), cell: (k) => <code>{k.spec.fingerprint}</code> },
    { id: 'until', title: t('acc.until'), value: (k) => k.spec.expiresAt, cell: (k) => <Time at={k.spec.expiresAt} /> },
    {
      id: 'used',
      title: t('acc.used'),
      value: (k) => k.status?.lastUsedAt,
      cell: (k) => <Time at={k.status?.lastUsedAt} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (k) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${k.meta.name}`}
          onClick={() => removal.ask(k)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <Card>
      <CardTitle component="h2">{t('ssh.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p>{t('ssh.help')}</p>
        <ObjectList
          name="ssh-keys"
          label={t('ssh.title')}
          columns={columns}
          query={query}
          bulk={[removal.bulk()]}
          keyOf={(k) => k.meta.id ?? ''}
          empty={<Empty title={t('ssh.empty')} help={t('ssh.emptyHelp')} icon={KeyIcon} />}
        />
        <div>
          <Button variant="secondary" onClick={() => setAdding(true)}>
            {t('ssh.add')}
          </Button>
        </div>
      </CardBody>
      {adding && <AddKey onMade={() => (setAdding(false), again())} onClose={() => setAdding(false)} />}
      {removal.dialog}
    </Card>
  );
}
