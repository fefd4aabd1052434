// Creates or changes a group: its name, roles and members.
import { Button, Label, LabelGroup } from '@patternfly/react-core';
import { useState } from 'react';
import type { Schemas } from '../api/client';
import { useSaveGroup, type Grant, type Group } from '../api/groups';
import type { Role } from '../api/session';
import { useText } from '../i18n';
import { asCommand, asCurl } from '../lib/shell';
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

interface Props {
  organization: string;
  /** The group to change; none creates one. */
  group?: Group;
  names: Map<string, string>;
  onClose: () => void;
}

export function GroupForm({ organization, group, names, onClose }: Props) {
  const { t } = useText();
  const { projects, project } = useProject();
  const save = useSaveGroup(onClose);
  const local = !group?.spec.source || group.spec.source === 'local';
  const [form, setForm] = useState({
    name: group?.meta.name ?? '',
    displayName: group?.spec.displayName ?? '',
    members: (group?.spec.members ?? []).map((id) => names.get(id) ?? id).join('\n'),
    role: 'member' as Role,
    project: project || projects[0]?.meta.id || '',
  });
  const [grants, setGrants] = useState<Grant[]>(group?.spec.grants ?? []);
  const set = (name: keyof typeof form) => (v: string) => setForm((f) => ({ ...f, [name]: v }));
  const scoped = ofProject.includes(form.role);
  const next: Grant = { role: form.role, organization, ...(scoped && { project: form.project }) };
  const members = form.members.split(/[\s,]+/).filter(Boolean);
  const body: Group = {
    kind: 'Group',
    meta: group ? { ...group.meta, name: form.name.trim() } : { name: form.name.trim(), organization },
    spec: {
      ...group?.spec,
      displayName: form.displayName.trim(),
      grants,
      ...(local && { members }),
    },
  };
  const title = t(group ? 'grp.edit' : 'grp.create');
  const text = (g: Grant) => grantText(g, t(`role.${g.role}`), projects);
  return (
    <FormDialog
      title={title}
      help={t('grp.help')}
      action={group ? t('op.save') : title}
      busy={save.isPending}
      error={save.error}
      schema="Group"
      body={body}
      onSubmit={() => save.mutate(body)}
      onClose={onClose}
    >
      {group?.spec.source !== 'scim' && (
        <>
          <TextField
            id="group-name"
            label={t('common.name')}
            help={t('new.nameHelp')}
            path="meta.name"
            value={form.name}
            onChange={set('name')}
            required
          />
          <TextField
            id="group-display"
            label={t('grp.displayName')}
            path="spec.displayName"
            value={form.displayName}
            onChange={set('displayName')}
          />
        </>
      )}
      <LabelGroup categoryName={t('grp.roles')} numLabels={16}>
        {grants.map((g) => (
          <Label
            key={text(g)}
            onClose={() => setGrants(grants.filter((x) => !same(x, g)))}
            closeBtnAriaLabel={t('grp.removeRole', { role: text(g) })}
          >
            {text(g)}
          </Label>
        ))}
      </LabelGroup>
      <SelectField
        id="group-role"
        label={t('common.role')}
        value={form.role}
        onChange={set('role')}
        options={[...ofProject, ...ofOrganization].map((r) => [r, t(`role.${r}`)])}
      />
      {scoped && (
        <SelectField
          id="group-project"
          label={t('common.project')}
          value={form.project}
          onChange={set('project')}
          options={projects.map((p) => [p.meta.id ?? '', p.meta.name])}
        />
      )}
      <div>
        <Button
          variant="secondary"
          isDisabled={(scoped && !form.project) || grants.some((g) => same(g, next))}
          onClick={() => setGrants([...grants, next])}
        >
          {t('grp.addRole')}
        </Button>
      </div>
      {local ? (
        <TextField
          id="group-members"
          label={t('grp.members')}
          help={t('grp.membersHelp')}
          path="spec.members"
          rows={5}
          value={form.members}
          onChange={set('members')}
        />
      ) : (
        <p className="basalt-note">{t('grp.membersElsewhere')}</p>
      )}
      <Same
        cli={asCommand(['group', group ? 'set' : 'create', body.meta.name || 'NAME'], {
          organization: group ? undefined : organization,
          'display-name': body.spec.displayName || undefined,
          member: local && members.length > 0 && members.join(','),
        })}
        curl={asCurl(group ? 'PUT' : 'POST', group ? `/v1/groups/${group.meta.id}` : '/v1/groups', body)}
      />
    </FormDialog>
  );
}
