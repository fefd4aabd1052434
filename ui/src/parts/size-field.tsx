// A size with its unit.
import { FormSelect, FormSelectOption, InputGroup, InputGroupItem, TextInput } from '@patternfly/react-core';
import { useText } from '../i18n';
import { units, type Size, type Unit } from '../lib/size';
import { Field, said } from './field';
import { useWrong } from './form';

interface Props {
  id: string;
  label: string;
  help?: string;
  path: string;
  size: Size;
  set: (s: Size) => void;
  required?: boolean;
}

export function SizeField({ id, label, help, path, size, set, required }: Props) {
  const { t } = useText();
  const error = useWrong(id);
  return (
    <Field id={id} label={label} help={help} path={path} required={required}>
      <InputGroup>
        <InputGroupItem isFill>
          <TextInput
            id={id}
            type="number"
            min={0}
            step="any"
            isRequired={required}
            value={size.number}
            {...said(id, error)}
            onChange={(_, number) => set({ ...size, number })}
          />
        </InputGroupItem>
        <InputGroupItem className="basalt-unit">
          <FormSelect
            id={`${id}-unit`}
            aria-label={t('vol.unit', { label })}
            value={size.unit}
            onChange={(_, unit) => set({ ...size, unit: unit as Unit })}
          >
            {Object.keys(units).map((u) => (
              <FormSelectOption key={u} value={u} label={u} />
            ))}
          </FormSelect>
        </InputGroupItem>
      </InputGroup>
    </Field>
  );
}
