import {
  FormGroup,
  FormHelperText,
  FormSelect,
  HelperText,
  HelperTextItem,
  TextArea,
  TextInput,
} from '@patternfly/react-core';
import { cloneElement, type ReactElement } from 'react';
import { useField } from './form';

interface Props {
  id: string;
  label: string;
  help?: string;
  /** Where its value is in what the form sends: what is wrong there is shown here. */
  path?: string;
  required?: boolean;
  /** What is wrong whatever the form says. */
  error?: string;
  children: ReactElement<object>;
}

/** describedBy is the id of a field's help and error, for its aria-describedby. */
export const describedBy = (id: string) => `${id}-help`;

/** inputs are those that say themselves what is wrong with them. */
const inputs: unknown[] = [TextInput, TextArea, FormSelect];

/** said are the properties by which an input says what is wrong with its field. */
export const said = (id: string, error: string | undefined) => ({
  validated: error ? ('error' as const) : ('default' as const),
  'aria-describedby': describedBy(id),
});

export function Field({ id, label, help, path, required, error, children }: Props) {
  const found = useField(id, { path, label, required });
  const shown = error ?? found;
  const input = inputs.includes(children.type)
    ? cloneElement(children, { ...said(id, shown), ...(required && { isRequired: true }) })
    : children;
  return (
    <FormGroup label={label} fieldId={id} isRequired={required}>
      {input}
      <FormHelperText>
        <HelperText id={describedBy(id)}>
          {shown ? (
            <HelperTextItem variant="error">{shown}</HelperTextItem>
          ) : (
            help && <HelperTextItem>{help}</HelperTextItem>
          )}
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}
