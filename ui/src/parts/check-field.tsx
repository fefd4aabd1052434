// A checkbox with its error.
import { Checkbox } from '@patternfly/react-core';
import { useField } from './form';

interface Props {
  id: string;
  label: string;
  help?: string;
  path: string;
  checked: boolean;
  onChange: (on: boolean) => void;
}

export function CheckField({ id, label, help, path, checked, onChange }: Props) {
  const error = useField(id, { path, label });
  return (
    <Checkbox
      id={id}
      label={label}
      description={error ?? help}
      isValid={!error}
      isChecked={checked}
      onChange={(_, on) => onChange(on)}
    />
  );
}
