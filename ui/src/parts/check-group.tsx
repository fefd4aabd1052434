// A choice of any number of options, with its error.
import { Checkbox, FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import { describedBy } from './field';
import { useField } from './form';

interface Option<V extends string> {
  value: V;
  label: string;
  note?: string;
}

interface Props<V extends string> {
  id: string;
  label: string;
  help?: string;
  /** Path of the list in the request body; errors at that path are shown here. */
  path: string;
  options: readonly Option<V>[];
  chosen: readonly V[];
  /** Gets what is chosen then, in the order of the options. */
  set: (chosen: V[]) => void;
}

/** CheckGroup renders nothing when there is nothing to choose. */
export function CheckGroup<V extends string>({ id, label, help, path, options, chosen, set }: Props<V>) {
  const error = useField(id, { path, label });
  if (options.length === 0) return null;
  const values = options.map((o) => o.value);
  return (
    <FormGroup role="group" fieldId={id} label={label} isStack aria-describedby={describedBy(id)}>
      {options.map((o, i) => (
        <Checkbox
          key={o.value}
          // The first one has the ID of the field, so that a list of errors leads to it.
          id={i === 0 ? id : `${id}-${o.value}`}
          label={o.label}
          description={o.note}
          isValid={!error}
          aria-invalid={i === 0 && error ? true : undefined}
          isChecked={chosen.includes(o.value)}
          onChange={(_, on) => set(values.filter((v) => (v === o.value ? on : chosen.includes(v))))}
        />
      ))}
      <FormHelperText>
        <HelperText id={describedBy(id)} aria-live="polite">
          {(error ?? help) && <HelperTextItem variant={error ? 'error' : 'default'}>{error ?? help}</HelperTextItem>}
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}
