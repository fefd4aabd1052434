// The storage pool of a new volume: one of the fixed names, or a pool on disks. Only operators can list disks; others
// enter the name of such a pool.
import { FormSelect, FormSelectOption, FormSelectOptionGroup } from '@patternfly/react-core';
import { useState } from 'react';
import { useDisks } from '../api/cluster';
import { useNodes } from '../api/queries';
import { may, useSessionQuery } from '../api/session';
import { useText } from '../i18n';
import { builtinPools, diskPools } from '../lib/disk-pool';
import { Field } from './field';
import { TextField } from './text-field';

interface Props {
  id: string;
  label: string;
  path: string;
  value: string;
  onChange: (v: string) => void;
}

const other = '*'; // no name of a pool

export function StoragePoolField({ id, label, path, value, onChange }: Props) {
  const { t } = useText();
  const session = useSessionQuery().data;
  const operator = Boolean(session && may(session, 'operator'));
  const disks = useDisks(operator).data?.items ?? [];
  const nodes = useNodes({ limit: 1000 }, operator).data?.items ?? [];
  const pools = diskPools(disks, nodes);
  const [entering, setEntering] = useState(false);
  const entered = entering && !operator;
  return (
    <>
      <Field id={id} label={label} path={entered ? undefined : path}>
        <FormSelect
          id={id}
          value={entered ? other : value}
          onChange={(_, v) => (setEntering(v === other), onChange(v === other ? '' : v))}
        >
          <FormSelectOption value="" label={t('vol.poolAny')} />
          {builtinPools.map((p) => (
            <FormSelectOption key={p} value={p} label={p} />
          ))}
          {pools.length > 0 && (
            <FormSelectOptionGroup label={t('vol.poolDisks')}>
              {pools.map((p) => (
                <FormSelectOption
                  key={p.name}
                  value={p.name}
                  label={p.nodes.length > 0 ? `${p.name} (${p.nodes.join(', ')})` : p.name}
                />
              ))}
            </FormSelectOptionGroup>
          )}
          {!operator && <FormSelectOption value={other} label={t('vol.poolOther')} />}
        </FormSelect>
      </Field>
      {entered && (
        <TextField
          id={`${id}-name`}
          label={t('vol.poolName')}
          help={t('vol.poolNameHelp')}
          path={path}
          value={value}
          onChange={onChange}
          required
        />
      )}
    </>
  );
}
