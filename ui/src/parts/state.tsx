// The state of objects that are created, exist and are deleted; not only by colour.
import { Label } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon } from '@patternfly/react-icons';
import { useText } from '../i18n';
import type { Told } from '../lib/cause';
import type { State } from '../lib/state';
import { Note } from './told';

export function StateLabel({ state, note }: { state: State; note?: Told }) {
  const { t } = useText();
  const text = t(`state.${state}`);
  const label =
    state === 'Ready' ? (
      <Label color="green" icon={<CheckCircleIcon />}>
        {text}
      </Label>
    ) : state === 'Failed' ? (
      <Label color="red" icon={<ExclamationCircleIcon />}>
        {text}
      </Label>
    ) : (
      <Label color="blue" icon={<InProgressIcon />}>
        {text}
      </Label>
    );
  return (
    <div>
      {label} {note?.text && <Note of={note} />}
    </div>
  );
}
