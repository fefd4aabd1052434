import { TextArea, TextInput } from '@patternfly/react-core';
import type { Schemas } from '../../api/client';
import { apps } from '../../api/resource';
import { useText, type Key } from '../../i18n';
import { applied } from '../../lib/shell';
import { AppIcon, appIcons } from '../../parts/app-icon';
import { Conflict } from '../../parts/conflict';
import { useEdit } from '../../parts/edit';
import { Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Same } from '../../parts/same';
import { SelectField } from '../../parts/text-field';

type App = Schemas['App'];

// The text fields, in the form's order; an app's ports and needs are kept.
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

type Form = Record<'name' | 'icon' | (typeof fields)[number]['field'], string>;

const begun = { displayName: '', version: '1', image: '' };

function formOf(app: App | undefined): Form {
  const spec: App['spec'] = app?.spec ?? begun;
  return {
    ...(Object.fromEntries(fields.map(({ field }) => [field, spec[field] ?? ''])) as Form),
    name: app?.meta.name ?? '',
    icon: spec.icon || 'cube',
  };
}

export function AppForm({ app, onDone, onClose }: { app?: App; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const edit = useEdit<App, Form>({
    of: apps,
    object: app,
    fields: formOf,
    body: (a, { name, icon, ...texts }) => ({
      kind: 'App',
      meta: { name, ...(a && { revision: a.meta.revision, labels: a.meta.labels }) },
      spec: { ...(a?.spec ?? begun), ...texts, icon: icon as App['spec']['icon'] },
    }),
    onSaved: onDone,
  });
  const { form } = edit;
  return (
    <FormDialog
      wide
      title={app ? t('pool.changeTitle', { name: app.meta.name }) : t('cat.create')}
      action={app ? t('op.save') : t('common.create')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="App"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={(x) => t(x === 'icon' ? 'cat.icon' : (fields.find((f) => f.field === x)?.text ?? 'common.name'))}
      />
      <Field id="app-name" label={t('common.name')} path="meta.name" required>
        <TextInput
          id="app-name"
          value={form.name}
          onChange={(_, v) => edit.set('name')(v)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      {fields.map((f) => {
        const id = `app-${f.field}`;
        const props = {
          id,
          value: form[f.field],
          onChange: (_: unknown, v: string) => edit.set(f.field)(v),
          isRequired: 'required' in f,
        };
        return (
          <Field
            key={id}
            id={id}
            label={t(f.text)}
            help={'help' in f ? t(f.help) : undefined}
            path={`spec.${f.field}`}
            required={'required' in f}
          >
            {'lines' in f ? (
              <TextArea {...props} rows={f.lines} resizeOrientation="vertical" spellCheck={f.field !== 'userData'} />
            ) : (
              <TextInput {...props} autoComplete="off" />
            )}
          </Field>
        );
      })}
      <SelectField
        id="app-icon"
        label={t('cat.icon')}
        path="spec.icon"
        value={form.icon}
        onChange={edit.set('icon')}
        options={appIcons.map((i) => [i, i])}
      />
      <AppIcon icon={form.icon as App['spec']['icon']} />
      <Same cli={applied(edit.body)} curl={edit.curl} />
    </FormDialog>
  );
}
