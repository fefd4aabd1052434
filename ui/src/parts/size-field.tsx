// A size with its unit.
import { FormSelect, FormSelectOption, InputGroup, InputGroupItem, TextInput } from '@patternfly/react-core';
import type { FieldErrors } from '../api/fields';
import { useText } from '../i18n';
import { units, type Size, type Unit } from '../lib/size';
import { describedBy, Field } from './field';

interface Props {
  id: string;
  label: string;
  help?: string;
  path: string;
  errors: FieldErrors;
  size: Size;
  set: (s: Size) => void;
  required?: boolean;
}

export function SizeField({ id, label, help, path, errors, size, set, required }: Props) {
  const { t } = useText();
  const error = errors.at(path);
  return (
    <Field id={id} label={label} help={help} error={error} required={required}>
      <InputGroup>
        <InputGroupItem isFill>
          <TextInput
            id={id}
            type="number"
            min={0}
            step="any"
            isRequired={required}
            value={size.number}
            validated={error ? 'error' : 'default'}
            aria-describedby={describedBy(id)}
            onChange={(_, number) => (errors.changed(path), set({ ...size, number }))}
          />
        </InputGroupItem>
        <InputGroupItem className="basalt-unit">
          <FormSelect
            id={`${id}-unit`}
            aria-label={t('vol.unit', { label })}
            value={size.unit}
            onChange={(_, unit) => (errors.changed(path), set({ ...size, unit: unit as Unit }))}
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
