// Creates or changes a flavor.
import type { Schemas } from '../api/client';
import { flavors } from '../api/resource';
import { useText, type Key } from '../i18n';
import { formatBytes } from '../lib/format';
import { asCommand, sizeFlag } from '../lib/shell';
import type { Machine } from '../lib/machine';
import { bytesOf, isSize, sizeOf, type Size } from '../lib/size';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { FormDialog } from '../parts/form-dialog';
import { HugePagesField } from '../parts/machine-fields';
import { Same } from '../parts/same';
import { SizeField } from '../parts/size-field';
import { SelectField, TextField } from '../parts/text-field';

type Flavor = Schemas['Flavor'];

interface Form {
  name: string;
  vcpus: string;
  memory: Size;
  root: Size;
  cpuPolicy: NonNullable<Flavor['spec']['cpuPolicy']>;
  hugePages: Machine['hugePages'];
}

const labels: Record<keyof Form, Key> = {
  name: 'common.name',
  vcpus: 'flv.vcpus',
  memory: 'one.memory',
  root: 'one.rootDisk',
  cpuPolicy: 'mach.policy',
  hugePages: 'mach.pages',
};
const policies: Record<Form['cpuPolicy'], Key> = {
  shared: 'mach.policy.shared',
  dedicated: 'mach.policy.dedicated',
  optional: 'flv.policy.optional',
};
const begun: Flavor['spec'] = { vcpus: 2, memoryBytes: 4 * 2 ** 30, rootBytes: 20 * 2 ** 30 };

function formOf(flavor: Flavor | undefined): Form {
  const { vcpus, memoryBytes, rootBytes, cpuPolicy, hugePages } = flavor?.spec ?? begun;
  return {
    name: flavor?.meta.name ?? '',
    vcpus: String(vcpus),
    memory: sizeOf(memoryBytes),
    root: sizeOf(rootBytes ?? 0),
    cpuPolicy: cpuPolicy || 'shared',
    hugePages: hugePages ?? '',
  };
}

const bodyOf = (flavor: Flavor | undefined, f: Form): Flavor => ({
  kind: 'Flavor',
  meta: { name: f.name.trim(), ...(flavor && { revision: flavor.meta.revision, labels: flavor.meta.labels }) },
  spec: {
    ...flavor?.spec, // what the form does not show stays
    vcpus: Number(f.vcpus),
    memoryBytes: bytesOf(f.memory),
    rootBytes: bytesOf(f.root),
    cpuPolicy: f.cpuPolicy === 'shared' && !flavor?.spec.cpuPolicy ? undefined : f.cpuPolicy,
    hugePages: f.hugePages || undefined,
  },
});

export function FlavorForm({ flavor, onClose }: { flavor?: Flavor; onClose: () => void }) {
  const { t, language } = useText();
  const edit = useEdit<Flavor, Form>({ of: flavors, object: flavor, fields: formOf, body: bodyOf, onSaved: onClose });
  const {
    form,
    body: { meta, spec },
  } = edit;
  return (
    <FormDialog
      title={flavor ? t('pool.changeTitle', { name: flavor.meta.name }) : t('flv.create')}
      help={flavor && t('flv.changeHelp')}
      action={flavor ? t('op.save') : t('common.create')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="Flavor"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict
        edit={edit}
        label={(f) => t(labels[f])}
        text={(_, v) => (isSize(v) ? formatBytes(bytesOf(v), language) : undefined)}
      />
      <TextField
        id="flavor-name"
        label={t('common.name')}
        help={t('cust.nameHelp')}
        path="meta.name"
        value={form.name}
        onChange={edit.set('name')}
        required
      />
      <TextField
        id="flavor-vcpus"
        type="number"
        label={t('flv.vcpus')}
        path="spec.vcpus"
        value={form.vcpus}
        onChange={edit.set('vcpus')}
        required
      />
      <SizeField
        id="flavor-memory"
        label={t('one.memory')}
        path="spec.memoryBytes"
        size={form.memory}
        set={edit.set('memory')}
        required
      />
      <SizeField
        id="flavor-root"
        label={t('one.rootDisk')}
        help={t('flv.rootHelp')}
        path="spec.rootBytes"
        size={form.root}
        set={edit.set('root')}
      />
      <SelectField
        id="flavor-cpu-policy"
        label={t('mach.policy')}
        help={t('mach.policyHelp')}
        path="spec.cpuPolicy"
        value={form.cpuPolicy}
        onChange={(v) => edit.set('cpuPolicy')(v as Form['cpuPolicy'])}
        options={Object.entries(policies).map(([v, key]) => [v, t(key)])}
      />
      <HugePagesField
        id="flavor-huge-pages"
        value={form.hugePages}
        onChange={(v) => edit.set('hugePages')(v as Form['hugePages'])}
        otherwise={t('flv.ordinary')}
      />
      <Same
        cli={asCommand(['flavor', flavor ? 'set' : 'create', meta.name || 'NAME'], {
          vcpus: form.vcpus,
          memory: sizeFlag(spec.memoryBytes),
          'root-size': spec.rootBytes ? sizeFlag(spec.rootBytes) : undefined,
          'cpu-policy': spec.cpuPolicy,
          'huge-pages': spec.hugePages,
          'huge-pages=': Boolean(flavor?.spec.hugePages) && !spec.hugePages,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
