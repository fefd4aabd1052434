import { TextInput } from '@patternfly/react-core';
import type { Schemas } from '../api/client';
import { externalNetworks } from '../api/resource';
import { useText, type Key } from '../i18n';
import { asCommand } from '../lib/shell';
import { CheckField } from '../parts/check-field';
import { Conflict } from '../parts/conflict';
import { useEdit } from '../parts/edit';
import { Field } from '../parts/field';
import { FormDialog } from '../parts/form-dialog';
import { Same } from '../parts/same';

type External = Schemas['ExternalNetwork'];

const fields = [
  { field: 'cidr4', text: 'xnet.cidr4', help: 'xnet.cidr4Help' },
  { field: 'gateway4', text: 'xnet.gateway4' },
  { field: 'ranges4', text: 'xnet.ranges4', help: 'xnet.rangesHelp' },
  { field: 'cidr6', text: 'xnet.cidr6' },
  { field: 'gateway6', text: 'xnet.gateway6' },
  { field: 'ranges6', text: 'xnet.ranges6' },
  { field: 'physicalNetwork', text: 'xnet.cable', help: 'xnet.cableHelp' },
  { field: 'vlan', text: 'xnet.vlan', help: 'xnet.vlanHelp' },
] as const satisfies readonly { field: keyof External['spec']; text: Key; help?: Key }[];

type Form = Record<'name' | (typeof fields)[number]['field'], string> & { default: boolean };

const list = (text: string) => text.split(/[\s,]+/).filter(Boolean);

const formOf = (network: External | undefined): Form => {
  const s = network?.spec;
  return {
    name: network?.meta.name ?? '',
    default: s?.default ?? network === undefined,
    cidr4: s?.cidr4 ?? '',
    gateway4: s?.gateway4 ?? '',
    ranges4: s?.ranges4?.join(', ') ?? '',
    cidr6: s?.cidr6 ?? '',
    gateway6: s?.gateway6 ?? '',
    ranges6: s?.ranges6?.join(', ') ?? '',
    physicalNetwork: s?.physicalNetwork ?? '',
    vlan: s?.vlan ? String(s.vlan) : '',
  };
};

function bodyOf(
  network: External | undefined,
  { name, default: isDefault, ranges4, ranges6, vlan, ...words }: Form,
): External {
  const given = Object.fromEntries(
    Object.entries(words)
      .filter(([, v]) => v.trim() !== '')
      .map(([k, v]) => [k, v.trim()]),
  );
  return {
    kind: 'ExternalNetwork',
    meta: { name, ...(network && { revision: network.meta.revision, labels: network.meta.labels }) },
    spec: {
      ...given,
      ...(ranges4 && { ranges4: list(ranges4) }),
      ...(ranges6 && { ranges6: list(ranges6) }),
      ...(vlan && { vlan: Number(vlan) }),
      ...(isDefault && { default: true }),
    },
  };
}

export function ExternalForm({
  network,
  onDone,
  onClose,
}: {
  network?: External;
  onDone: () => void;
  onClose: () => void;
}) {
  const { t } = useText();
  const edit = useEdit<External, Form>({
    of: externalNetworks,
    object: network,
    fields: formOf,
    body: bodyOf,
    onSaved: onDone,
  });
  const { form } = edit;
  const label = (field: keyof Form): Key =>
    field === 'name' ? 'common.name' : (fields.find((f) => f.field === field)?.text ?? 'xnet.isDefault');
  return (
    <FormDialog
      title={network ? t('pool.changeTitle', { name: network.meta.name }) : t('xnet.create')}
      action={network ? t('op.save') : t('common.create')}
      busy={edit.busy}
      disabled={edit.gone}
      error={edit.error}
      schema="ExternalNetwork"
      body={edit.body}
      onSubmit={edit.submit}
      onClose={onClose}
    >
      <Conflict edit={edit} label={(f) => t(label(f))} />
      <Field id="net-name" label={t('common.name')} path="meta.name" required>
        <TextInput
          id="net-name"
          value={form.name}
          onChange={(_, v) => edit.set('name')(v)}
          isRequired
          autoComplete="off"
          spellCheck={false}
        />
      </Field>
      {fields.map((f) => {
        const id = `net-${f.field}`;
        return (
          <Field key={id} id={id} label={t(f.text)} help={'help' in f ? t(f.help) : undefined} path={`spec.${f.field}`}>
            <TextInput
              id={id}
              type={f.field === 'vlan' ? 'number' : 'text'}
              value={form[f.field]}
              onChange={(_, v) => edit.set(f.field)(v)}
              autoComplete="off"
              spellCheck={false}
            />
          </Field>
        );
      })}
      <CheckField
        id="net-default"
        label={t('xnet.isDefault')}
        help={t('xnet.isDefaultHelp')}
        path="spec.default"
        checked={form.default}
        onChange={edit.set('default')}
      />
      <Same
        cli={asCommand(['external-network', network ? 'set' : 'create', form.name || 'NAME'], {
          cidr4: form.cidr4,
          gateway4: form.gateway4,
          ranges4: list(form.ranges4).join(','),
          cidr6: form.cidr6,
          gateway6: form.gateway6,
          ranges6: list(form.ranges6).join(','),
          'physical-network': form.physicalNetwork,
          vlan: form.vlan,
          default: form.default,
        })}
        curl={edit.curl}
      />
    </FormDialog>
  );
}
