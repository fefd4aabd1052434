import { FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import { cloneElement, type ReactElement } from 'react';
import type { FieldErrors } from '../api/fields';

interface Props {
  id: string;
  label: string;
  help?: string;
  /** From the form itself, or from the API where errors and path are not given. */
  error?: string;
  /** What the API said, shown here if it is of this path, until the field is changed. */
  errors?: FieldErrors;
  path?: string;
  required?: boolean;
  children: ReactElement<{ validated?: 'error' | 'default'; 'aria-describedby'?: string }>;
}

/** describedBy is the id of a field's help and error, for its aria-describedby. */
export const describedBy = (id: string) => `${id}-help`;

export function Field({ id, label, help, error, errors, path, required, children }: Props) {
  const said = path === undefined ? undefined : errors?.at(path);
  const shown = error ?? said;
  const input = errors
    ? cloneElement(children, { validated: shown ? 'error' : 'default', 'aria-describedby': describedBy(id) })
    : children;
  return (
    <FormGroup
      label={label}
      fieldId={id}
      isRequired={required}
      onChange={() => path !== undefined && errors?.changed(path)}
    >
      {input}
      <FormHelperText>
        <HelperText id={describedBy(id)} aria-live="polite">
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
