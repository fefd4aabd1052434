// A choice of any number of objects, by name.
import { Checkbox, FormGroup, FormHelperText, HelperText, HelperTextItem } from '@patternfly/react-core';
import { useField } from './form';

interface Props<T> {
  id: string;
  label: string;
  help: string;
  path: string;
  items: T[];
  chosen: string[];
  set: (name: string, on: boolean) => void;
  note?: (item: T) => string;
}

/** Choices renders nothing when there is nothing to choose. */
export function Choices<T extends { meta: { id?: string; name: string } }>({
  id,
  label,
  help,
  path,
  items,
  chosen,
  set,
  note,
}: Props<T>) {
  const error = useField(id, { path, label });
  if (items.length === 0) return null;
  return (
    <FormGroup role="group" fieldId={id} label={label} isStack>
      {items.map((i) => (
        <Checkbox
          key={i.meta.id}
          id={`${id}-${i.meta.id}`}
          label={i.meta.name}
          description={note?.(i)}
          isChecked={chosen.includes(i.meta.name)}
          onChange={(_, on) => set(i.meta.name, on)}
        />
      ))}
      <FormHelperText>
        <HelperText aria-live="polite">
          <HelperTextItem variant={error ? 'error' : 'default'}>{error ?? help}</HelperTextItem>
        </HelperText>
      </FormHelperText>
    </FormGroup>
  );
}
