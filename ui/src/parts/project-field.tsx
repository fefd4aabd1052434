// The project that a new thing belongs to: the one that one works in, and a
// choice where there are several.
import { FormSelect, FormSelectOption } from '@patternfly/react-core';
import { useState } from 'react';
import { useText } from '../i18n';
import { useProject } from './project';
import { Field } from './field';

/** useNewIn is the project of a new thing: its id, its name, and how to choose another. */
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
