import { FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import type { ReactElement } from 'react';

interface Props {
  id: string;
  label: string;
  help?: string;
  /** From the API, or from the form itself. */
  error?: string;
  required?: boolean;
  children: ReactElement;
}

/** describedBy is the id of a field's help and error, for its aria-describedby. */
export const describedBy = (id: string) => `${id}-help`;

export function Field({ id, label, help, error, required, children }: Props) {
  return (
    <FormGroup label={label} fieldId={id} isRequired={required}>
      {children}
      <FormHelperText>
        <HelperText id={describedBy(id)} aria-live="polite">
          {error ? <HelperTextItem variant="error">{error}</HelperTextItem> : help && <HelperTextItem>{help}</HelperTextItem>}
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}
