// An organization's projects and their quotas.
import { Button, TextInput } from '@patternfly/react-core';
import { FolderIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { projects } from '../api/resource';
import { removeProject, type Project } from '../api/tenant';
import { useText } from '../i18n';
import { formatBytes } from '../lib/format';
import { flags, isSize, limitsOf, quotaForm, quotaKey, quotas, type Quota, type QuotaForm } from '../lib/quota';
import { lines, quote } from '../lib/shell';
import { Actions } from '../parts/actions';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../parts/list';
import { PageBody } from '../parts/page';
import { useRemoval } from '../parts/removal';
import { Same } from '../parts/same';
import { useProjects } from '../api/queries';
import { useProject } from '../parts/project';

type Form = QuotaForm & { name: string; displayName: string };

const formOf = (p: Project | undefined): Form => ({
  ...quotaForm(p?.spec.quota),
  name: p?.meta.name ?? '',
  displayName: p?.spec.displayName ?? '',
});

/** bodyOf keeps the cluster's restrictions, which the form does not contain. */
const bodyOf = (
  p: Project | undefined,
  { name, displayName, ...quota }: Form,
  organization: string | undefined,
): Project => ({
  kind: 'Project',
  meta: { ...(p ? p.meta : { organization }), name: name.trim() },
  spec: { ...p?.spec, displayName: displayName.trim(), quota: limitsOf(quota, p?.spec.quota) },
});

function Edit({
  project,
  organization,
  onClose,
}: {
  project?: Project;
  organization: string | undefined;
  onClose: () => void;
}) {
  const { t } = useText();
  const edit = useEdit<Project, Form>({
    of: projects,
    object: project,
    fields: formOf,
    body: (p, f) => bodyOf(p, f, organization),
    onSaved: onClose,
  });
  const {
    form,
    body: { meta, spec },
  } = edit;
  const label = (q: Quota) => (isSize(q) ? `${t(quotaKey(q))} (GiB)` : t(quotaKey(q)));
  return (
    <FormDialog
      title={project ? t('proj.editTitle', { name: project.meta.name }) : t('proj.create')}
      action={project ? t('vol.save') : t('common.create')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="Project"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
      wide
    >
      <Conflict
        edit={edit}
        label={(f) => (f === 'name' ? t('common.name') : f === 'displayName' ? t('proj.shown') : label(f))}
      />
      <Field id="proj-name" label={t('common.name')} help={t('new.nameHelp')} path="meta.name" required>
        <TextInput
          id="proj-name"
          value={form.name}
          onChange={(_, v) => edit.set('name')(v)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      <Field id="proj-shown" label={t('proj.shown')} path="spec.displayName">
        <TextInput
          id="proj-shown"
          value={form.displayName}
          onChange={(_, v) => edit.set('displayName')(v)}
          autoComplete="off"
        />
      </Field>
      <p className="basalt-note">{t('proj.quotaHelp')}</p>
      <div className="basalt-pair">
        {quotas.map((q) => (
          <Field key={q} id={`quota-${q}`} label={label(q)} path={`spec.quota.${q}`}>
            <TextInput
              id={`quota-${q}`}
              type="number"
              min={0}
              step={q.endsWith('Bytes') ? 'any' : 1}
              value={form[q]}
              onChange={(_, v) => edit.set(q)(v)}
            />
          </Field>
        ))}
      </div>
      <Same
        cli={lines([
          `basalt project ${project ? 'set' : 'create'} ${quote(project?.meta.name ?? (meta.name || 'NAME'))}`,
          ...(project
            ? meta.name === project.meta.name
              ? []
              : [`--name ${quote(meta.name)}`]
            : [`--organization ${quote(organization ?? '')}`]),
          ...(spec.displayName ? [`--display-name ${quote(spec.displayName)}`] : []),
          ...flags(spec.quota ?? {}),
        ])}
        curl={edit.curl}
      />
    </FormDialog>
  );
}

export function Projects() {
  const { t, language } = useText();
  const { organization } = useProject();
  const query = useProjects(true);
  const [editing, setEditing] = useState<Project | 'new' | null>(null);
  const removal = useRemoval<Project>({
    remove: removeProject,
    title: (name) => t('proj.deleteTitle', { name }),
    help: t('proj.deleteHelp'),
  });
  const create = organization && <Button onClick={() => setEditing('new')}>{t('proj.create')}</Button>;
  const words = (p: Project) =>
    quotas
      .filter((q) => p.spec.quota?.[q] !== undefined)
      .map(
        (q) =>
          `${t(`quota.${q}`)}: ${q.endsWith('Bytes') ? formatBytes(p.spec.quota?.[q] ?? 0, language) : new Intl.NumberFormat(language).format(p.spec.quota?.[q] ?? 0)}`,
      )
      .join(', ');
  const columns: Column<Project>[] = [
    { id: 'name', title: t('common.name'), cell: (p) => p.meta.name },
    { id: 'shown', title: t('proj.shown'), cell: (p) => p.spec.displayName || '–' },
    { id: 'quota', title: t('proj.quota'), cell: (p) => words(p) || t('proj.noQuota') },
    {
      id: 'actions',
      control: true,
      title: t('common.actions'),
      cell: (p) => (
        <Actions
          of={p.meta.name}
          actions={[
            { text: t('proj.edit'), run: () => setEditing(p) },
            { text: t('common.delete'), danger: true, run: () => removal.ask(p) },
          ]}
        />
      ),
    },
  ];
  return (
    <PageBody title={t('proj.title')} actions={create}>
      <ObjectList
        name="projects"
        label={t('proj.title')}
        columns={columns}
        query={query}
        bulk={[removal.bulk()]}
        keyOf={(p) => p.meta.id ?? p.meta.name}
        empty={<Empty title={t('proj.empty')} help={t('proj.emptyHelp')} icon={FolderIcon} action={create} />}
      />
      {editing && (
        <Edit
          project={editing === 'new' ? undefined : editing}
          organization={organization}
          onClose={() => setEditing(null)}
        />
      )}
      {removal.dialog}
    </PageBody>
  );
}
