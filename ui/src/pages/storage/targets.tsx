import { Button, Radio, TextInput, Title } from '@patternfly/react-core';
import { ArchiveIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useBackupTargets } from '../../api/cluster';
import { useText, type Key } from '../../i18n';
import { told } from '../../lib/cause';
import { asCommand, asCurl } from '../../lib/shell';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { Note } from '../../parts/told';
import { ToneLabel } from '../../parts/tone';

type Target = Schemas['BackupTarget'];

const s3Fields = [
  { field: 'endpoint', text: 'tgt.endpoint', required: true },
  { field: 'bucket', text: 'tgt.bucket', required: true },
  { field: 'region', text: 'tgt.region', required: false },
  { field: 'accessKey', text: 'tgt.accessKey', required: true },
  { field: 'secretKey', text: 'tgt.secretKey', required: true },
] as const satisfies readonly { field: string; text: Key; required: boolean }[];

function TargetForm({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const [form, setForm] = useState({
    name: '',
    directory: '',
    password: '',
    s3: false,
    endpoint: '',
    bucket: '',
    region: '',
    accessKey: '',
    secretKey: '',
  });
  const set = (field: keyof typeof form) => (_: unknown, v: string | boolean) => setForm((f) => ({ ...f, [field]: v }));
  const { endpoint, bucket, region, accessKey, secretKey } = form;
  const spec: Schemas['BackupTargetSpec'] = {
    ...(form.s3
      ? { s3: { endpoint, bucket, accessKey, secretKey, ...(region && { region }) } }
      : { directory: form.directory }),
    ...(form.password && { password: form.password }),
  };
  const body: Target = { kind: 'BackupTarget', meta: { name: form.name }, spec };
  const save = useMutation({ mutationFn: () => ok(api.POST('/v1/backup-targets', { body })), onSuccess: onDone });
  const secret = (spec: Schemas['BackupTargetSpec']) => ({
    ...spec,
    ...(spec.password && { password: '…' }),
    ...(spec.s3 && { s3: { ...spec.s3, secretKey: '…' } }),
  });
  const input = (
    field: Exclude<keyof typeof form, 's3'>,
    label: Key,
    path: string,
    required: boolean,
    type: 'text' | 'password' = 'text',
    help?: Key,
  ) => {
    const id = `target-${field}`;
    return (
      <Field key={id} id={id} label={t(label)} help={help && t(help)} path={path} required={required}>
        <TextInput
          id={id}
          type={type}
          value={form[field]}
          onChange={set(field)}
          isRequired={required}
          autoComplete={type === 'password' ? 'new-password' : 'off'}
          spellCheck={false}
        />
      </Field>
    );
  };
  return (
    <FormDialog
      title={t('tgt.create')}
      action={t('common.create')}
      busy={save.isPending}
      error={save.error}
      schema="BackupTarget"
      body={body}
      onSubmit={save.mutate}
      onClose={onClose}
    >
      {input('name', 'common.name', 'meta.name', true)}
      <div role="radiogroup" aria-label={t('tgt.where')}>
        <Radio
          id="target-is-directory"
          name="target-kind"
          label={t('tgt.directory')}
          isChecked={!form.s3}
          onChange={() => set('s3')(null, false)}
        />
        <Radio
          id="target-is-s3"
          name="target-kind"
          label={t('tgt.s3')}
          isChecked={form.s3}
          onChange={() => set('s3')(null, true)}
        />
      </div>
      {form.s3
        ? s3Fields.map((f) =>
            input(f.field, f.text, `spec.s3.${f.field}`, f.required, f.field === 'secretKey' ? 'password' : 'text'),
          )
        : input('directory', 'tgt.path', 'spec.directory', true, 'text', 'tgt.pathHelp')}
      {input('password', 'tgt.password', 'spec.password', false, 'password', 'tgt.passwordHelp')}
      <Same
        cli={asCommand(
          ['backup-target', 'create', form.name || 'NAME'],
          form.s3
            ? {
                's3-endpoint': endpoint || 'URL',
                's3-bucket': bucket || 'BUCKET',
                's3-region': region,
                's3-access-key': accessKey || 'KEY',
                's3-secret-key-file': 'FILE',
                ...(form.password && { 'password-file': 'FILE' }),
              }
            : { directory: form.directory || 'PATH', ...(form.password && { 'password-file': 'FILE' }) },
        )}
        curl={asCurl('POST', `/v1/backup-targets`, { ...body, spec: secret(spec) })}
      />
    </FormDialog>
  );
}

export function Targets() {
  const { t } = useText();
  const client = useQueryClient();
  const query = useBackupTargets();
  const [adding, setAdding] = useState(false);
  const again = () => client.invalidateQueries({ queryKey: ['BackupTarget', 'list'] });
  const removal = useRemoval<Target>({
    remove: (x) => ok(api.DELETE('/v1/backup-targets/{id}', { params: { path: { id: x.meta.id ?? '' } } })),
    title: (name) => t('one.deleteTitle', { name }),
    help: t('tgt.deleteHelp'),
  });
  const create = <Button onClick={() => setAdding(true)}>{t('tgt.create')}</Button>;
  const columns: Column<Target>[] = [
    { id: 'name', title: t('common.name'), cell: (x) => x.meta.name },
    {
      id: 'state',
      title: t('common.state'),
      value: (x) => x.status?.phase,
      cell: ({ status: s }) => (
        <div>
          <ToneLabel
            tone={s?.phase === 'Ready' ? 'good' : s?.phase === 'Failed' ? 'bad' : 'busy'}
            text={t(`tgt.${s?.phase ?? 'Pending'}`)}
          />{' '}
          <Note of={told(s?.lastError, s?.cause)} />
        </div>
      ),
    },
    {
      id: 'where',
      title: t('tgt.where'),
      cell: ({ spec: s }) => s.directory || [s.s3?.endpoint, s.s3?.bucket].join('/'),
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (x) => (
        <Button
          variant="link"
          isInline
          isDanger
          aria-label={`${t('common.delete')}: ${x.meta.name}`}
          onClick={() => removal.ask(x)}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <>
      <div className="basalt-header">
        <Title headingLevel="h2" size="lg">
          {t('tgt.title')}
        </Title>
        {(query.data?.items.length ?? 0) > 0 && create}
      </div>
      <ObjectList
        name="backup-targets"
        label={t('tgt.title')}
        columns={columns}
        query={query}
        bulk={[removal.bulk()]}
        keyOf={(x) => x.meta.id ?? x.meta.name}
        empty={<Empty title={t('tgt.empty')} help={t('tgt.emptyHelp')} icon={ArchiveIcon} action={create} />}
      />
      {adding && <TargetForm onDone={() => (setAdding(false), void again())} onClose={() => setAdding(false)} />}
      {removal.dialog}
    </>
  );
}
