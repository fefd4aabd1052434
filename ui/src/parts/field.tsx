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
  /** Path of its value in the request body; errors at that path are shown here. */
  path?: string;
  required?: boolean;
  /** An error that is shown independently of the form. */
  error?: string;
  children: ReactElement<object>;
}

/** describedBy returns the ID of a field's help and error, for its aria-describedby. */
export const describedBy = (id: string) => `${id}-help`;

/** inputs are the components that show their own errors. */
const inputs: unknown[] = [TextInput, TextArea, FormSelect];

/** said returns the properties by which an input announces its field's error. */
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
