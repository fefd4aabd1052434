import { Alert, Button, ClipboardCopy, FormSelect, FormSelectOption, TextInput } from '@patternfly/react-core';
import { KeyIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import type { Role } from '../api/session';
import { useText } from '../i18n';
import { asCommand, asCurl } from '../lib/shell';
import { Confirm } from '../parts/confirm';
import { Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Empty, ObjectList, useProjectListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { Same } from '../parts/same';
import { useProject } from '../parts/project';
import { Time } from '../parts/time';
import { collections } from '../api/collection';

type APIKey = Schemas['APIKey'];

const day = 86_400_000; // ms

/** Of a project, or of all of an organization. */
const ofProject: Role[] = ['member', 'viewer'];
const ofOrganization: Role[] = ['admin', 'billing'];

function CreateKey({ onMade, onClose }: { onMade: (k: APIKey) => void; onClose: () => void }) {
  const { t } = useText();
  const { projects, project, organization } = useProject();
  const [form, setForm] = useState({
    name: '',
    role: 'member' as Role,
    project: project || projects[0]?.meta.id || '',
    days: '90',
  });
  const set = (name: keyof typeof form) => (_: unknown, v: string) => setForm((f) => ({ ...f, [name]: v }));
  const scoped = ofProject.includes(form.role);
  const days = Math.max(0, Number(form.days) || 0);
  const [opened] = useState(() => Date.now());
  const body: APIKey = {
    kind: 'APIKey',
    meta: { name: form.name.trim(), ...(scoped ? { project: form.project } : { organization }) },
    spec: { role: form.role, ...(days > 0 && { expiresAt: new Date(opened + days * day).toISOString() }) },
  };
  const create = useMutation({ mutationFn: () => ok(api.POST('/v1/api-keys', { body })), onSuccess: onMade });
  const projectName = projects.find((p) => p.meta.id === form.project)?.meta.name ?? form.project;
  return (
    <FormDialog
      title={t('key.create')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="APIKey"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field id="key-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput id="key-name" value={form.name} onChange={set('name')} isRequired autoComplete="off" />
      </Field>
      <Field id="key-role" label={t('key.role')} path="spec.role" required>
        <FormSelect id="key-role" value={form.role} onChange={set('role')}>
          {[...ofProject, ...ofOrganization].map((r) => (
            <FormSelectOption key={r} value={r} label={t(`role.${r}`)} />
          ))}
        </FormSelect>
      </Field>
      {scoped && (
        <Field id="key-project" label={t('common.project')} path="meta.project" required>
          <FormSelect id="key-project" value={form.project} onChange={set('project')}>
            {projects.map((p) => (
              <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.meta.name} />
            ))}
          </FormSelect>
        </Field>
      )}
      <Field id="key-days" label={t('key.days')} help={t('key.daysHelp')} path="spec.expiresAt">
        <TextInput id="key-days" type="number" min={0} max={3650} value={form.days} onChange={set('days')} />
      </Field>
      <Same
        cli={asCommand(['api-key', 'create', body.meta.name || 'NAME'], {
          project: scoped ? projectName : undefined,
          organization: scoped ? undefined : organization,
          role: form.role,
          'expires-in': days > 0 && `${days * 24}h`,
        })}
        curl={asCurl('POST', '/v1/api-keys', body)}
      />
    </FormDialog>
  );
}

const removeKey = (k: APIKey) => ok(api.DELETE('/v1/api-keys/{id}', { params: { path: { id: k.meta.id ?? '' } } }));

export function Keys() {
  const { t } = useText();
  const client = useQueryClient();
  const { projects } = useProject();
  const list = useProjectListing(collections.keys);
  const [creating, setCreating] = useState(false);
  const [made, setMade] = useState<APIKey | null>(null);
  const [going, setGoing] = useState<APIKey | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['APIKey', 'list'] });
  const remove = useMutation({
    mutationFn: removeKey,
    onSuccess: () => (setGoing(null), again()),
  });
  const create = <Button onClick={() => (setMade(null), setCreating(true))}>{t('key.create')}</Button>;
  const columns: Column<APIKey>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (k) => k.meta.name },
    { id: 'role', sort: 'spec.role', title: t('key.role'), cell: (k) => t(`role.${k.spec.role}`) },
    {
      id: 'project',
      sort: 'project',
      title: t('common.project'),
      cell: (k) => projects.find((p) => p.meta.id === k.meta.project)?.meta.name ?? k.meta.project ?? t('key.whole'),
    },
    {
      id: 'lastUsed',
      sort: 'status.lastUsedAt',
      title: t('key.lastUsed'),
      value: (k) => k.status?.lastUsedAt,
      cell: (k) => <Time at={k.status?.lastUsedAt} none={t('common.never')} />,
    },
    {
      id: 'expires',
      sort: 'spec.expiresAt',
      title: t('key.expires'),
      value: (k) => k.spec.expiresAt,
      cell: (k) => <Time at={k.spec.expiresAt} none={t('common.never')} />,
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
          onClick={() => (remove.reset(), setGoing(k))}
        >
          {t('common.delete')}
        </Button>
      ),
    },
  ];
  return (
    <PageBody title={t('key.title')} actions={create}>
      <div className="basalt-stack">
        {made && (
          <Alert
            component="h2"
            variant="success"
            isInline
            isLiveRegion
            title={t('key.ready', { name: made.meta.name })}
          >
            <div className="basalt-stack">
              <p>{t('key.secretHelp')}</p>
              <ClipboardCopy
                isReadOnly
                hoverTip={t('common.copy')}
                clickTip={t('common.copied')}
                textAriaLabel={t('key.secret')}
              >
                {made.secret ?? ''}
              </ClipboardCopy>
              <div>
                <Button variant="secondary" onClick={() => setMade(null)}>
                  {t('common.close')}
                </Button>
              </div>
            </div>
          </Alert>
        )}
        <ObjectList
          name="keys"
          label={t('key.title')}
          columns={columns}
          list={list}
          bulk={[{ id: 'delete', text: t('common.delete'), help: t('key.deleteHelp'), danger: true, run: removeKey }]}
          keyOf={(k) => k.meta.id ?? k.meta.name}
          empty={<Empty title={t('key.empty')} help={t('key.emptyHelp')} icon={KeyIcon} action={create} />}
        />
      </div>
      {creating && (
        <CreateKey onClose={() => setCreating(false)} onMade={(k) => (setMade(k), setCreating(false), void again())} />
      )}
      {going && (
        <Confirm
          title={t('key.deleteTitle', { name: going.meta.name })}
          help={t('key.deleteHelp')}
          action={t('common.delete')}
          danger
          busy={remove.isPending}
          error={remove.error}
          onConfirm={() => remove.mutate(going)}
          onClose={() => setGoing(null)}
        />
      )}
    </PageBody>
  );
}
