// The state of objects that are created, exist and are deleted; not only by colour.
import { Label } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon } from '@patternfly/react-icons';
import { useText } from '../i18n';
import type { State } from '../lib/state';

export function StateLabel({ state, note }: { state: State; note?: string }) {
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
      {label} {note && <span className="basalt-note">{note}</span>}
    </div>
  );
}
