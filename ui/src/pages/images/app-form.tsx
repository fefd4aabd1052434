import { TextArea, TextInput } from '@patternfly/react-core';
import { useMutation } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { atField } from '../../api/fields';
import { useText, type Key } from '../../i18n';
import { applied, asCurl } from '../../lib/shell';
import { describedBy, Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';

type App = Schemas['App'];

// The fields of text, in the form's order; ports and needs of an app stay as they are.
const fields = [
  { field: 'displayName', text: 'cat.displayName', required: true },
  { field: 'version', text: 'node.version', required: true },
  { field: 'category', text: 'cat.category', help: 'cat.categoryHelp' },
  { field: 'description', text: 'cat.what', lines: 2 },
  { field: 'image', text: 'cat.image', help: 'cat.imageHelp', required: true },
  { field: 'imageURL', text: 'img.url' },
  { field: 'userData', text: 'new.userData', lines: 8 },
  { field: 'notes', text: 'cat.notes', help: 'cat.notesHelp', lines: 2 },
] as const satisfies readonly { field: keyof App['spec']; text: Key; help?: Key; required?: boolean; lines?: number }[];

const shown = ['meta.name', ...fields.map((f) => `spec.${f.field}`)];

export function AppForm({ app, onDone, onClose }: { app?: App; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const [name, setName] = useState(app?.meta.name ?? '');
  const [spec, setSpec] = useState<App['spec']>(app?.spec ?? { displayName: '', version: '1', image: '' });
  const body: App = { kind: 'App', meta: { name, ...(app && { revision: app.meta.revision, labels: app.meta.labels }) }, spec };
  const save = useMutation({
    mutationFn: () => (app ? ok(api.PUT('/v1/apps/{id}', { params: { path: { id: app.meta.id ?? '' } }, body })) : ok(api.POST('/v1/apps', { body }))),
    onSuccess: onDone,
  });
  const at = (path: string) => atField(save.error, path);
  return (
    <FormDialog wide title={app ? t('pool.changeTitle', { name: app.meta.name }) : t('cat.create')} action={app ? t('op.save') : t('common.create')} busy={save.isPending} error={save.error} shown={shown} onSubmit={save.mutate} onClose={onClose}>
      <Field id="app-name" label={t('common.name')} error={at('meta.name')} required>
        <TextInput id="app-name" value={name} onChange={(_, v) => setName(v)} isRequired autoComplete="off" spellCheck={false} validated={at('meta.name') ? 'error' : 'default'} aria-describedby={describedBy('app-name')} />
      </Field>
      {fields.map((f) => {
        const id = `app-${f.field}`;
        const error = at(`spec.${f.field}`);
        const props = { id, value: spec[f.field] ?? '', onChange: (_: unknown, v: string) => setSpec((s) => ({ ...s, [f.field]: v })), isRequired: 'required' in f, validated: error ? ('error' as const) : ('default' as const), 'aria-describedby': describedBy(id) };
        return (
          <Field key={id} id={id} label={t(f.text)} help={'help' in f ? t(f.help) : undefined} error={error} required={'required' in f}>
            {'lines' in f ? <TextArea {...props} rows={f.lines} resizeOrientation="vertical" spellCheck={f.field !== 'userData'} /> : <TextInput {...props} autoComplete="off" />}
          </Field>
        );
      })}
      <Same cli={applied(body)} curl={asCurl(app ? 'PUT' : 'POST', `/v1/apps${app ? `/${app.meta.id}` : ''}`, body)} />
    </FormDialog>
  );
}
