import { Label } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon, OffIcon } from '@patternfly/react-icons';
import type { Instance } from '../api/client';
import { useText } from '../i18n';
import { busy, phaseKey, phaseOf } from '../lib/phase';

/** PhaseLabel is an instance's state; not by colour alone. */
export function PhaseLabel({ instance }: { instance: Instance }) {
  const { t } = useText();
  const p = phaseOf(instance);
  const text = t(phaseKey(p));
  if (p === 'Running')
    return (
      <Label color="green" icon={<CheckCircleIcon />}>
        {text}
      </Label>
    );
  if (p === 'Stopped')
    return (
      <Label color="grey" icon={<OffIcon />}>
        {text}
      </Label>
    );
  return busy(p) ? (
    <Label color="blue" icon={<InProgressIcon />}>
      {text}
    </Label>
  ) : (
    <Label color="red" icon={<ExclamationCircleIcon />}>
      {text}
    </Label>
  );
}
