// Creates or changes a group: its name, its roles, and who decides its members.
import { Button, Label, LabelGroup } from '@patternfly/react-core';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import type { Grant, Group } from '../api/groups';
import { useLoginProviders, useOwnProviders } from '../api/identity-providers';
import { groups } from '../api/resource';
import type { Role } from '../api/session';
import { useText, type Key } from '../i18n';
import { asCommand } from '../lib/shell';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { FormDialog } from '../parts/form-dialog';
import { useProject } from '../parts/project';
import { Same } from '../parts/same';
import { SelectField, TextField } from '../parts/text-field';

const ofProject: Role[] = ['member', 'viewer'];
const ofOrganization: Role[] = ['admin', 'billing'];

export const grantText = (g: Grant, role: string, projects: Schemas['Project'][]) => {
  const project = projects.find((p) => p.meta.id === g.project)?.meta.name ?? g.project;
  return project ? `${role} (${project})` : role;
};

const same = (a: Grant, b: Grant) => a.role === b.role && (a.project ?? '') === (b.project ?? '');

interface Form {
  name: string;
  displayName: string;
  grants: Grant[];
  /** Of a new group; those of an existing one are added and removed one by one. */
  members: string;
  /** Name of the identity provider that decides the members of a new group. */
  provider: string;
  externalId: string;
}

const labels: Record<keyof Form, Key> = {
  name: 'common.name',
  displayName: 'grp.displayName',
  grants: 'grp.roles',
  members: 'grp.members',
  provider: 'grp.source',
  externalId: 'grp.externalId',
};

const formOf = (g: Group | undefined): Form => ({
  name: g?.meta.name ?? '',
  displayName: g?.spec.displayName ?? '',
  grants: g?.spec.grants ?? [],
  members: '',
  provider: '',
  externalId: g?.spec.externalId ?? '',
});

export const addressesIn = (text: string) => text.split(/[\s,;]+/).filter(Boolean);

/** made returns what only a new group has. */
const made = (f: Form): Group['spec'] =>
  f.provider ? { source: 'identity-provider', identityProvider: f.provider } : { members: addressesIn(f.members) };

const bodyOf =
  (organization: string) =>
  (g: Group | undefined, f: Form): Group => ({
    kind: 'Group',
    meta: { ...(g ? g.meta : { organization }), name: f.name.trim() },
    spec: {
      ...(g ? g.spec : made(f)),
      displayName: f.displayName.trim(),
      grants: f.grants,
      ...(f.externalId.trim() && { externalId: f.externalId.trim() }),
    },
  });

interface GrantsProps {
  organization: string;
  grants: Grant[];
  set: (grants: Grant[]) => void;
}

function Grants({ organization, grants, set }: GrantsProps) {
  const { t } = useText();
  const { projects, project } = useProject();
  const [form, setForm] = useState({ role: 'member' as Role, project: project || projects[0]?.meta.id || '' });
  const scoped = ofProject.includes(form.role);
  const next: Grant = { role: form.role, organization, ...(scoped && { project: form.project }) };
  const text = (g: Grant) => grantText(g, t(`role.${g.role}`), projects);
  return (
    <>
      <LabelGroup categoryName={t('grp.roles')} numLabels={16}>
        {grants.map((g) => (
          <Label
            key={text(g)}
            onClose={() => set(grants.filter((x) => !same(x, g)))}
            closeBtnAriaLabel={t('grp.removeRole', { role: text(g) })}
          >
            {text(g)}
          </Label>
        ))}
      </LabelGroup>
      <SelectField
        id="group-role"
        label={t('common.role')}
        path="spec.grants"
        value={form.role}
        onChange={(role) => setForm((f) => ({ ...f, role: role as Role }))}
        options={[...ofProject, ...ofOrganization].map((r) => [r, t(`role.${r}`)])}
      />
      {scoped && (
        <SelectField
          id="group-project"
          label={t('common.project')}
          value={form.project}
          onChange={(v) => setForm((f) => ({ ...f, project: v }))}
          options={projects.map((p) => [p.meta.id ?? '', p.meta.name])}
        />
      )}
      <div>
        <Button
          variant="secondary"
          isDisabled={(scoped && !form.project) || grants.some((g) => same(g, next))}
          onClick={() => set([...grants, next])}
        >
          {t('grp.addRole')}
        </Button>
      </div>
    </>
  );
}

/** Source is who decides the members of a new group: its administrators, or an identity provider. */
function Source({
  organization,
  form,
  set,
}: {
  organization: string;
  form: Form;
  set: (name: 'provider' | 'externalId' | 'members') => (v: string) => void;
}) {
  const { t } = useText();
  const shared = useLoginProviders().data?.names ?? [];
  const own = (useOwnProviders(organization).data?.items ?? []).filter((p) => p.meta.organization === organization);
  const providers = [
    ...own.map((p): [string, string] => [p.meta.id ?? '', p.meta.name]),
    ...shared.map((n): [string, string] => [n, n]),
  ];
  return (
    <>
      {providers.length > 0 && (
        <SelectField
          id="group-provider"
          label={t('grp.source')}
          help={t('grp.providerHelp')}
          path="spec.identityProvider"
          value={form.provider}
          onChange={set('provider')}
          options={[
            ['', t('grp.source.local')],
            ...providers.map(([ref, name]): [string, string] => [ref, t('grp.sourceProvider', { name })]),
          ]}
        />
      )}
      {form.provider ? (
        <ExternalID value={form.externalId} set={set('externalId')} />
      ) : (
        <TextField
          id="group-members"
          label={t('grp.members')}
          help={t('grp.membersHelp')}
          path="spec.members"
          rows={5}
          value={form.members}
          onChange={set('members')}
        />
      )}
    </>
  );
}

function ExternalID({ value, set }: { value: string; set: (v: string) => void }) {
  const { t } = useText();
  return (
    <TextField
      id="group-external"
      label={t('grp.externalId')}
      help={t('grp.externalIdHelp')}
      path="spec.externalId"
      value={value}
      onChange={set}
    />
  );
}

interface Props {
  organization: string;
  /** The group to change; none creates one. */
  group?: Group;
  onClose: () => void;
}

export function GroupForm({ organization, group, onClose }: Props) {
  const { t } = useText();
  const { projects } = useProject();
  const edit = useEdit<Group, Form>({
    of: groups,
    object: group,
    fields: formOf,
    body: bodyOf(organization),
    onSaved: onClose,
  });
  const { form, body } = edit;
  const title = t(group ? 'grp.edit' : 'grp.create');
  const members = addressesIn(form.members);
  const text = (g: Grant) => grantText(g, t(`role.${g.role}`), projects);
  return (
    <FormDialog
      title={title}
      help={t('grp.help')}
      action={group ? t('op.save') : title}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="Group"
      body={body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(f, v) => (f === 'grants' ? (v as Grant[]).map(text).join(', ') : undefined)}
      />
      {group?.spec.source !== 'scim' && (
        <>
          <TextField
            id="group-name"
            label={t('common.name')}
            help={t('new.nameHelp')}
            path="meta.name"
            value={form.name}
            onChange={edit.set('name')}
            required
          />
          <TextField
            id="group-display"
            label={t('grp.displayName')}
            path="spec.displayName"
            value={form.displayName}
            onChange={edit.set('displayName')}
          />
        </>
      )}
      <Grants organization={organization} grants={form.grants} set={edit.set('grants')} />
      {!group && <Source organization={organization} form={form} set={edit.set} />}
      {group?.spec.source === 'identity-provider' && (
        <ExternalID value={form.externalId} set={edit.set('externalId')} />
      )}
      <Same
        cli={asCommand(
          [
            'group',
            group ? 'set' : 'create',
            body.meta.name || 'NAME',
            ...form.grants.flatMap((g) => ['--grant', `${g.role}@${organization}${g.project ? `/${g.project}` : ''}`]),
          ],
          {
            organization: group ? undefined : organization,
            'display-name': body.spec.displayName,
            member: !form.provider && members.join(','),
            'identity-provider': form.provider,
            'external-id': form.externalId,
          },
        )}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
