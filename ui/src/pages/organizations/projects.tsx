// A customer's projects.
import { Button } from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok } from '../../api/client';
import { type Organization } from '../../api/customers';
import { removeProject, type Project } from '../../api/tenant';
import { useText } from '../../i18n';
import { asCurl, quote } from '../../lib/shell';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, useListing, type Column } from '../../parts/list';
import { useRemoval } from '../../parts/removal';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';
import { Time } from '../../parts/time';
import { collections } from '../../api/collection';

function CreateProject({ organization: o, onClose }: { organization: Organization; onClose: () => void }) {
  const { t } = useText();
  const client = useQueryClient();
  const [name, setName] = useState('');
  const [displayName, setDisplayName] = useState('');
  const body: Project = {
    kind: 'Project',
    meta: { name: name.trim(), organization: o.meta.id },
    spec: displayName.trim() ? { displayName: displayName.trim() } : {},
  };
  const create = useMutation({
    mutationFn: () => ok(api.POST('/v1/projects', { body })),
    onSuccess: () => (void client.invalidateQueries({ queryKey: ['Project', 'list'] }), onClose()),
  });
  return (
    <FormDialog
      title={t('cust.projectCreate')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      schema="Project"
      body={body}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <TextField
        id="project-name"
        label={t('common.name')}
        help={t('cust.nameHelp')}
        path="meta.name"
        value={name}
        onChange={setName}
        required
      />
      <TextField
        id="project-display"
        label={t('cust.displayName')}
        path="spec.displayName"
        value={displayName}
        onChange={setDisplayName}
      />
      <Same
        cli={`basalt project create ${quote(body.meta.name || 'NAME')} --organization ${o.meta.name}`}
        curl={asCurl('POST', '/v1/projects', body)}
      />
    </FormDialog>
  );
}

export function Projects({ organization: o }: { organization: Organization }) {
  const { t } = useText();
  const [creating, setCreating] = useState(false);
  const list = useListing(collections.projects, { fixed: { organization: o.meta.id } });
  const removal = useRemoval<Project>({
    remove: removeProject,
    title: (name) => t('proj.deleteTitle', { name }),
    help: t('proj.deleteHelp'),
  });
  const create = (
    <Button variant="secondary" onClick={() => setCreating(true)}>
      {t('cust.projectCreate')}
    </Button>
  );
  const columns: Column<Project>[] = [
    { id: 'name', sort: 'name', title: t('common.name'), cell: (p) => p.meta.name },
    {
      id: 'displayName',
      sort: 'spec.displayName',
      title: t('cust.displayName'),
      cell: (p) => p.spec.displayName || '–',
    },
    {
      id: 'projectOwnQuota',
      title: t('cust.projectOwnQuota'),
      cell: (p) => Object.keys(p.spec.quota ?? {}).length || t('common.none'),
    },
    { id: 'reason', title: t('cust.reason'), cell: (p) => p.spec.restricted?.reason ?? '–' },
    {
      id: 'created',
      sort: 'createdAt',
      title: t('common.created'),
      value: (p) => p.meta.createdAt,
      cell: (p) => <Time at={p.meta.createdAt} />,
    },
  ];
  return (
    <div className="basalt-stack">
      {(list.query.data?.items.length ?? 0) > 0 && <div>{create}</div>}
      <ObjectList
        name="customer-projects"
        label={t('cust.projects')}
        columns={columns}
        list={list}
        actions={(p) => [{ text: t('common.delete'), danger: true, run: () => removal.ask(p) }]}
        bulk={[removal.bulk()]}
        keyOf={(p) => p.meta.id ?? p.meta.name}
        empty={
          <Empty title={t('cust.projectEmpty')} help={t('cust.projectEmptyHelp')} icon={CubesIcon} action={create} />
        }
      />
      {creating && <CreateProject organization={o} onClose={() => setCreating(false)} />}
      {removal.dialog}
    </div>
  );
}
