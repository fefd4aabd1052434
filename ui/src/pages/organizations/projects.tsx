// A customer's projects.
import { Button } from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { useProjectsOf, type Organization } from '../../api/customers';
import { atField } from '../../api/fields';
import { useText } from '../../i18n';
import { formatTime } from '../../lib/format';
import { asCurl, quote } from '../../lib/shell';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, usePages, type Column } from '../../parts/list';
import { Same } from '../../parts/same';
import { TextField } from '../../parts/text-field';

type Project = Schemas['Project'];

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
  const at = (path: string) => atField(create.error, path);
  return (
    <FormDialog
      title={t('cust.projectCreate')}
      action={t('common.create')}
      busy={create.isPending}
      error={create.error}
      shown={['meta.name', 'spec.displayName']}
      onSubmit={create.mutate}
      onClose={onClose}
    >
      <TextField
        id="project-name"
        label={t('common.name')}
        help={t('cust.nameHelp')}
        error={at('meta.name')}
        value={name}
        onChange={setName}
        required
      />
      <TextField
        id="project-display"
        label={t('cust.displayName')}
        error={at('spec.displayName')}
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
  const { t, language } = useText();
  const pages = usePages();
  const [creating, setCreating] = useState(false);
  const query = useProjectsOf({ organization: o.meta.id, limit: 25, continue: pages.token });
  const create = (
    <Button variant="secondary" onClick={() => setCreating(true)}>
      {t('cust.projectCreate')}
    </Button>
  );
  const columns: Column<Project>[] = [
    { title: t('common.name'), cell: (p) => p.meta.name },
    { title: t('cust.displayName'), cell: (p) => p.spec.displayName || '–' },
    { title: t('cust.projectOwnQuota'), cell: (p) => Object.keys(p.spec.quota ?? {}).length || t('common.none') },
    { title: t('cust.reason'), cell: (p) => p.spec.restricted?.reason ?? '–' },
    { title: t('common.created'), cell: (p) => formatTime(p.meta.createdAt, language) },
  ];
  return (
    <div className="basalt-stack">
      {(query.data?.items.length ?? 0) > 0 && <div>{create}</div>}
      <ObjectList
        label={t('cust.projects')}
        columns={columns}
        query={query}
        keyOf={(p) => p.meta.id ?? p.meta.name}
        pages={pages}
        empty={
          <Empty title={t('cust.projectEmpty')} help={t('cust.projectEmptyHelp')} icon={CubesIcon} action={create} />
        }
      />
      {creating && <CreateProject organization={o} onClose={() => setCreating(false)} />}
    </div>
  );
}
