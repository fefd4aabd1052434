// The fields that most forms are made of: a label, help or what is wrong, and
// an input that says both to a screen reader.
import { FormSelect, FormSelectOption, TextArea, TextInput } from '@patternfly/react-core';
import { Field } from './field';

interface Common {
  id: string;
  label: string;
  value: string;
  onChange: (value: string) => void;
  help?: string;
  /** Where its value is in what the form sends. */
  path?: string;
  required?: boolean;
}

interface Text extends Common {
  type?: 'text' | 'number' | 'email' | 'password' | 'url' | 'date' | 'datetime-local';
  rows?: number;
  autoComplete?: string;
  readOnly?: boolean;
}

export function TextField({
  id,
  label,
  value,
  onChange,
  help,
  path,
  required,
  type = 'text',
  rows,
  autoComplete = 'off',
  readOnly,
}: Text) {
  const common = {
    id,
    value,
    autoComplete,
    spellCheck: false,
  };
  return (
    <Field id={id} label={label} help={help} path={path} required={required}>
      {rows ? (
        <TextArea {...common} rows={rows} resizeOrientation="vertical" onChange={(_, v) => onChange(v)} />
      ) : (
        <TextInput
          {...common}
          type={type}
          readOnlyVariant={readOnly ? 'default' : undefined}
          onChange={(_, v) => onChange(v)}
        />
      )}
    </Field>
  );
}

export function SelectField({
  id,
  label,
  value,
  onChange,
  help,
  path,
  required,
  options,
}: Common & { options: [value: string, label: string][] }) {
  return (
    <Field id={id} label={label} help={help} path={path} required={required}>
      <FormSelect id={id} value={value} onChange={(_, v) => onChange(v)}>
        {options.map(([v, l]) => (
          <FormSelectOption key={v} value={v} label={l} />
        ))}
      </FormSelect>
    </Field>
  );
}
