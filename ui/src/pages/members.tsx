import { Alert, Button, ClipboardCopy, FormSelect, FormSelectOption, Label, TextInput } from '@patternfly/react-core';
import { UsersIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../api/client';
import { deleteUser } from '../api/customers';
import { inviteUser, useInvite } from '../api/mail';
import { useSessionQuery, type Role } from '../api/session';
import { languages, useText, type Language } from '../i18n';
import { passwordLink } from '../lib/address';
import { formatTime } from '../lib/format';
import { asCommand, asCurl } from '../lib/shell';
import { ErrorAlert } from '../parts/error';
import { Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import type { Bulk } from '../parts/list-bulk';
import { Empty, ObjectList, useListing, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useRemoval } from '../parts/removal';
import { Same } from '../parts/same';
import { useProject } from '../parts/project';
import { Time } from '../parts/time';
import { collections } from '../api/collection';

type User = Schemas['User'];

const ofProject: Role[] = ['member', 'viewer'];
const ofOrganization: Role[] = ['admin', 'billing'];

function AddMember({
  organization,
  onMade,
  onClose,
}: {
  organization: string;
  onMade: (u: User) => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const { projects, project } = useProject();
  const [form, setForm] = useState({
    email: '',
    role: 'member' as Role,
    project: project || projects[0]?.meta.id || '',
    language: '' as '' | Language,
  });
  const set = (name: keyof typeof form) => (_: unknown, v: string) => setForm((f) => ({ ...f, [name]: v }));
  const scoped = ofProject.includes(form.role);
  const body: User = {
    kind: 'User',
    meta: { name: form.email.trim(), organization },
    spec: {
      grants: [{ role: form.role, organization, ...(scoped && { project: form.project }) }],
      ...(form.language && { language: form.language }),
    },
  };
  const create = useMutation({ mutationFn: () => ok(api.POST('/v1/users', { body })), onSuccess: onMade });
  const projectName = projects.find((p) => p.meta.id === form.project)?.meta.name ?? form.project;
  return (
    <FormDialog
      title={t('mem.invite')}
      action={t('mem.add')}
      busy={create.isPending}
      error={create.error}
      schema="User"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <Field id="member-email" label={t('mem.email')} path="meta.name" required>
        <TextInput
          id="member-email"
          type="email"
          value={form.email}
          onChange={set('email')}
          isRequired
          autoComplete="off"
        />
      </Field>
      <Field id="member-role" label={t('common.role')} required>
        <FormSelect id="member-role" value={form.role} onChange={set('role')}>
          {[...ofProject, ...ofOrganization].map((r) => (
            <FormSelectOption key={r} value={r} label={t(`role.${r}`)} />
          ))}
        </FormSelect>
      </Field>
      {scoped && (
        <Field id="member-project" label={t('common.project')} required>
          <FormSelect id="member-project" value={form.project} onChange={set('project')}>
            {projects.map((p) => (
              <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.meta.name} />
            ))}
          </FormSelect>
        </Field>
      )}
      <Field id="member-language" label={t('mem.language')} path="spec.language" help={t('mem.languageHelp')}>
        <FormSelect id="member-language" value={form.language} onChange={set('language')}>
          <FormSelectOption value="" label={t('mem.languageOfCluster')} />
          {(Object.keys(languages) as Language[]).map((l) => (
            <FormSelectOption key={l} value={l} label={languages[l]} />
          ))}
        </FormSelect>
      </Field>
      <Same
        cli={asCommand(['user', 'create', body.meta.name || 'E-MAIL'], {
          organization,
          language: form.language || undefined,
          grant: `${form.role}@${organization}${scoped ? `/${projectName}` : ''}`,
        })}
        curl={asCurl('POST', '/v1/users', body)}
      />
    </FormDialog>
  );
}

export function Members() {
  const { t, language } = useText();
  const client = useQueryClient();
  const { projects, organization } = useProject();
  const [adding, setAdding] = useState(false);
  const [made, setMade] = useState<User | null>(null);
  const list = useListing(collections.users);
  const invite = useInvite();
  const self = useSessionQuery().data?.user;
  const other = (u: User) => u.meta.id !== self;
  const removal = useRemoval<User>({
    remove: deleteUser,
    title: (name) => t('cust.personDelete', { name }),
    help: t('cust.personDeleteHelp'),
  });
  const bulk: Bulk<User>[] = [
    {
      id: 'mail',
      text: t('mem.mail'),
      help: t('mem.mailHelp'),
      applies: (u) => !u.spec.disabled,
      run: (u) => inviteUser(u.meta.id ?? ''),
    },
    removal.bulk(other),
  ];
  const grant = (g: Schemas['Grant']) => {
    const p = projects.find((x) => x.meta.id === g.project)?.meta.name ?? g.project;
    return p ? `${t(`role.${g.role}`)} (${p})` : t(`role.${g.role}`);
  };
  const columns: Column<User>[] = [
    {
      id: 'email',
      sort: 'name',
      title: t('mem.email'),
      cell: (u) => (
        <>
          {u.meta.name}{' '}
          {u.spec.disabled && (
            <Label color="red" isCompact>
              {t('mem.disabled')}
            </Label>
          )}
        </>
      ),
    },
    { id: 'name', sort: 'spec.displayName', title: t('common.name'), cell: (u) => u.spec.displayName || '–' },
    { id: 'grants', title: t('mem.grants'), cell: (u) => u.spec.grants?.map(grant).join(', ') || t('common.none') },
    {
      id: 'twoFactor',
      sort: 'status.totp',
      title: t('mem.twoFactor'),
      cell: (u) => (u.status?.totp ? t('mem.on') : t('mem.off')),
    },
    {
      id: 'lastLogin',
      sort: 'status.lastLoginAt',
      title: t('mem.lastLogin'),
      value: (u) => u.status?.lastLoginAt,
      cell: (u) => <Time at={u.status?.lastLoginAt} none={t('common.never')} />,
    },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (u) => (
        <div className="basalt-actions">
          <Button
            variant="link"
            isInline
            aria-label={`${t('mem.mail')}: ${u.meta.name}`}
            isDisabled={u.spec.disabled || invite.isPending}
            onClick={() => invite.mutate(u.meta.id ?? '')}
          >
            {t('mem.mail')}
          </Button>
          {other(u) && (
            <Button
              variant="link"
              isInline
              isDanger
              aria-label={`${t('common.delete')}: ${u.meta.name}`}
              onClick={() => removal.ask(u)}
            >
              {t('common.delete')}
            </Button>
          )}
        </div>
      ),
    },
  ];
  return (
    <PageBody
      title={t('mem.title')}
      actions={organization && <Button onClick={() => (setMade(null), setAdding(true))}>{t('mem.invite')}</Button>}
    >
      <div className="basalt-stack">
        <ErrorAlert error={invite.error} onClose={invite.reset} />
        {invite.data && (
          <Alert
            component="p"
            variant="success"
            isInline
            isLiveRegion
            title={t('mem.mailed', { name: invite.data.spec.to })}
          />
        )}
        {made?.link && (
          <Alert
            component="h2"
            variant="success"
            isInline
            isLiveRegion
            title={t('mem.ready', { name: made.meta.name })}
          >
            <div className="basalt-stack">
              <p>{t('mem.linkHelp', { until: formatTime(made.link.expiresAt, language) })}</p>
              <ClipboardCopy
                isReadOnly
                hoverTip={t('common.copy')}
                clickTip={t('common.copied')}
                textAriaLabel={t('mem.link')}
              >
                {passwordLink(made.link.token)}
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
          name="members"
          label={t('mem.title')}
          columns={columns}
          list={list}
          bulk={bulk}
          keyOf={(u) => u.meta.id ?? u.meta.name}
          empty={<Empty title={t('mem.empty')} help={t('mem.emptyHelp')} icon={UsersIcon} />}
        />
      </div>
      {removal.dialog}
      {adding && organization && (
        <AddMember
          organization={organization}
          onClose={() => setAdding(false)}
          onMade={(u) => (setMade(u), setAdding(false), void client.invalidateQueries({ queryKey: ['User', 'list'] }))}
        />
      )}
    </PageBody>
  );
}
