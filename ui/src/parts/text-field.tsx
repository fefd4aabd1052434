// The most common form fields: a label, help or an error, and an input that announces both to screen readers.
import { FormSelect, FormSelectOption, TextArea, TextInput } from '@patternfly/react-core';
import { Field } from './field';

interface Common {
  id: string;
  label: string;
  value: string;
  onChange: (value: string) => void;
  help?: string;
  /** Path of its value in the request body. */
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
