// The project of a new object: the current one, or a choice if there are several.
import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useState } from 'react';
import { useText } from '../i18n';
import { useProject } from './project';
import { Field } from './field';

/** useNewIn returns the project of a new object: its ID, its name, and a function that chooses another. */
export function useNewIn(given?: string) {
  const { projects, project } = useProject();
  const [chosen, choose] = useState(given ?? '');
  const id = chosen || project || projects[0]?.meta.id || '';
  return { id, name: projects.find((p) => p.meta.id === id)?.meta.name ?? id, choose };
}

export function ProjectField({ of }: { of: ReturnType<typeof useNewIn> }) {
  const { t } = useText();
  const { projects, project } = useProject();
  if (project !== '' || projects.length < 2) return null;
  return (
    <Field id="in-project" label={t('common.project')} path="meta.project" required>
      <FormSelect id="in-project" value={of.id} onChange={(_, v) => of.choose(v)}>
        {projects.map((p) => (
          <FormSelectOption key={p.meta.id} value={p.meta.id} label={p.spec.displayName || p.meta.name} />
        ))}
      </FormSelect>
    </Field>
  );
}
