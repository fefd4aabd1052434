import { Button, TextInput } from '@patternfly/react-core';
import { ShieldAltIcon } from '@patternfly/react-icons';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { Link, useLocation } from 'wouter';
import { createGroup, removeGroup, type SecurityGroup } from '../../api/network';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { groupCommand } from '../../lib/commands';
import { asCurl } from '../../lib/shell';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, useProjectListing, type Column } from '../../parts/list';
import { PageBody } from '../../parts/page';
import { ProjectField, useNewIn } from '../../parts/project-field';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { useProject } from '../../parts/project';
import { collections } from '../../api/collection';

/** A new group allows all outgoing traffic, as most users want; its rules are edited on its page. */
function CreateGroup({ onClose }: { onClose: () => void }) {
  const { t } = useText();
  const [, go] = useLocation();
  const place = useNewIn();
  const [name, setName] = useState('');
  const group = (project: string): SecurityGroup => ({
    kind: 'SecurityGroup',
    meta: { name: name.trim(), project },
    spec: { rules: [{ direction: 'egress', protocol: 'any' }] },
  });
  const create = useMutation({
    mutationFn: () => createGroup(group(place.id)),
    onSuccess: (g) => go(`/security-groups/${g.meta.id}`),
  });
  return (
    <FormDialog
      title={t('sg.create')}
      help={t('sg.deny')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="SecurityGroup"
      body={group(place.id)}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <ProjectField of={place} />
      <Field id="sg-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="sg-name"
          value={name}
          onChange={(_, v) => setName(v)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Same
        cli={groupCommand('create', group(place.name))}
        curl={asCurl('POST', '/v1/security-groups', group(place.name))}
      />
    </FormDialog>
  );
}

export function Groups({ session }: { session: Session }) {
  const { t, count } = useText();
  const { project, projects } = useProject();
  const [creating, setCreating] = useState(false);
  const list = useProjectListing(collections.securityGroups);
  const removal = useRemoval<SecurityGroup>({
    remove: removeGroup,
    title: (n) => t('sg.deleteTitle', { name: n }),
    help: t('sg.deleteHelp'),
  });
  const member = may(session, 'member');
  const create = member && <Button onClick={() => setCreating(true)}>{t('sg.create')}</Button>;
  const actions = (g: SecurityGroup) =>
    member ? [{ text: t('common.delete'), danger: true, run: () => removal.ask(g) }] : [];
  const columns: Column<SecurityGroup>[] = [
    {
      id: 'name',
      sort: 'name',
      title: t('common.name'),
      cell: (g) => <Link href={`/security-groups/${g.meta.id}`}>{g.meta.name}</Link>,
    },
    { id: 'rulesTitle', title: t('sg.rulesTitle'), cell: (g) => count('sg.rules', g.spec.rules?.length ?? 0) },
    ...(project
      ? []
      : [
          {
            id: 'project',
            sort: 'project',
            title: t('common.project'),
            cell: (g: SecurityGroup) => projects.find((p) => p.meta.id === g.meta.project)?.meta.name ?? '',
          },
        ]),
  ];
  return (
    <PageBody title={t('sg.title')} actions={create}>
      <ObjectList
        name="security-groups"
        label={t('sg.title')}
        columns={columns}
        list={list}
        actions={actions}
        bulk={member ? [removal.bulk()] : undefined}
        keyOf={(g) => g.meta.id ?? g.meta.name}
        empty={<Empty title={t('sg.empty')} help={t('sg.emptyHelp')} icon={ShieldAltIcon} action={create} />}
      />
      {creating && <CreateGroup onClose={() => setCreating(false)} />}
      {removal.dialog}
    </PageBody>
  );
}
