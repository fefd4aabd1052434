import { Button, TextInput } from '@patternfly/react-core';
import { CubesIcon } from '@patternfly/react-icons';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { api, ok, type Schemas } from '../../api/client';
import { atField } from '../../api/fields';
import { useFlavors } from '../../api/queries';
import { may, type Session } from '../../api/session';
import { useText } from '../../i18n';
import { formatBytes } from '../../lib/format';
import { parseSize } from '../../lib/size';
import { asCommand, asCurl, sizeFlag } from '../../lib/shell';
import { Confirm } from '../../parts/confirm';
import { describedBy, Field } from '../../parts/field';
import { FormDialog } from '../../parts/form-dialog';
import { Empty, ObjectList, type Column } from '../../parts/list';
import { Same } from '../../parts/same';

type Flavor = Schemas['Flavor'];

const shown = ['meta.name', 'spec.vcpus', 'spec.memoryBytes', 'spec.rootBytes'];

function FlavorForm({ flavor, onDone, onClose }: { flavor?: Flavor; onDone: () => void; onClose: () => void }) {
  const { t } = useText();
  const s = flavor?.spec;
  const [form, setForm] = useState({ name: flavor?.meta.name ?? '', vcpus: String(s?.vcpus ?? 2), memory: sizeFlag(s?.memoryBytes ?? 2 ** 32), root: s?.rootBytes ? sizeFlag(s.rootBytes) : '0' });
  const [asked, setAsked] = useState(false);
  const set = (field: keyof typeof form) => (_: unknown, v: string) => setForm((f) => ({ ...f, [field]: v }));
  const sizes = { memory: parseSize(form.memory), root: parseSize(form.root) };
  const body: Flavor = { kind: 'Flavor', meta: { name: form.name, ...(flavor && { revision: flavor.meta.revision, labels: flavor.meta.labels }) }, spec: { vcpus: Number(form.vcpus), memoryBytes: sizes.memory, rootBytes: sizes.root } };
  const save = useMutation({
    mutationFn: () => (flavor ? ok(api.PUT('/v1/flavors/{id}', { params: { path: { id: flavor.meta.id ?? '' } }, body })) : ok(api.POST('/v1/flavors', { body }))),
    onSuccess: onDone,
  });
  const at = (path: string) => atField(save.error, path);
  const bad = (n: number) => (asked && Number.isNaN(n) ? t('flv.noSize') : undefined);
  const submit = () => (setAsked(true), !Number.isNaN(sizes.memory) && !Number.isNaN(sizes.root) && save.mutate());
  const text = (id: string, field: 'name' | 'memory' | 'root', label: string, error?: string, help?: string) => (
    <Field id={id} label={label} help={help} error={error} required>
      <TextInput id={id} value={form[field]} onChange={set(field)} isRequired autoComplete="off" spellCheck={false} validated={error ? 'error' : 'default'} aria-describedby={describedBy(id)} />
    </Field>
  );
  return (
    <FormDialog title={flavor ? t('pool.changeTitle', { name: flavor.meta.name }) : t('flv.create')} help={flavor && t('flv.changeHelp')} action={flavor ? t('op.save') : t('common.create')} busy={save.isPending} error={save.error} shown={shown} onSubmit={submit} onClose={onClose}>
      {text('flavor-name', 'name', t('common.name'), at('meta.name'))}
      <Field id="flavor-vcpus" label={t('flv.vcpus')} error={at('spec.vcpus')} required>
        <TextInput id="flavor-vcpus" type="number" min={1} step={1} value={form.vcpus} onChange={set('vcpus')} isRequired validated={at('spec.vcpus') ? 'error' : 'default'} aria-describedby={describedBy('flavor-vcpus')} />
      </Field>
      {text('flavor-memory', 'memory', t('one.memory'), bad(sizes.memory) ?? at('spec.memoryBytes'), t('flv.sizeHelp'))}
      {text('flavor-root', 'root', t('one.rootDisk'), bad(sizes.root) ?? at('spec.rootBytes'), t('flv.rootHelp'))}
      <Same cli={asCommand(['flavor', flavor ? 'update' : 'create', form.name || 'NAME'], { vcpus: form.vcpus, memory: form.memory, 'root-size': sizes.root ? form.root : undefined })} curl={asCurl(flavor ? 'PUT' : 'POST', `/v1/flavors${flavor ? `/${flavor.meta.id}` : ''}`, body)} />
    </FormDialog>
  );
}

export function Flavors({ session }: { session: Session }) {
  const { t, language } = useText();
  const client = useQueryClient();
  const query = useFlavors();
  const [editing, edit] = useState<Flavor | 'new' | null>(null);
  const [going, remove] = useState<Flavor | null>(null);
  const again = () => client.invalidateQueries({ queryKey: ['Flavor', 'list'] });
  const removal = useMutation({ mutationFn: (f: Flavor) => ok(api.DELETE('/v1/flavors/{id}', { params: { path: { id: f.meta.id ?? '' } } })), onSuccess: () => (remove(null), again()) });
  const operator = may(session, 'operator');
  const create = operator && <Button onClick={() => edit('new')}>{t('flv.create')}</Button>;
  const columns: Column<Flavor>[] = [
    { title: t('common.name'), cell: (f) => f.meta.name },
    { title: t('flv.vcpus'), cell: (f) => f.spec.vcpus },
    { title: t('one.memory'), cell: (f) => formatBytes(f.spec.memoryBytes, language) },
    { title: t('one.rootDisk'), cell: (f) => (f.spec.rootBytes ? formatBytes(f.spec.rootBytes, language) : t('flv.asImage')) },
    ...(operator
      ? [{
          title: t('common.actions'),
          cell: (f: Flavor) => (
            <div className="basalt-actions">
              <Button variant="link" isInline aria-label={`${t('op.change')}: ${f.meta.name}`} onClick={() => edit(f)}>{t('op.change')}</Button>
              <Button variant="link" isInline isDanger aria-label={`${t('common.delete')}: ${f.meta.name}`} onClick={() => (removal.reset(), remove(f))}>{t('common.delete')}</Button>
            </div>
          ),
        }]
      : []),
  ];
  return (
    <div className="basalt-stack">
      {create && <div>{create}</div>}
      <ObjectList label={t('flv.title')} columns={columns} query={query} keyOf={(f) => f.meta.id ?? f.meta.name} empty={<Empty title={t('flv.empty')} help={t('flv.emptyHelp')} icon={CubesIcon} />} />
      {editing && <FlavorForm flavor={editing === 'new' ? undefined : editing} onDone={() => (edit(null), void again())} onClose={() => edit(null)} />}
      {going && <Confirm title={t('one.deleteTitle', { name: going.meta.name })} help={t('flv.deleteHelp')} action={t('common.delete')} danger name={going.meta.name} busy={removal.isPending} error={removal.error} onConfirm={() => removal.mutate(going)} onClose={() => remove(null)} />}
    </div>
  );
}
