import { Label, Tooltip } from '@patternfly/react-core';
import { CheckCircleIcon, ExclamationCircleIcon, InProgressIcon, OffIcon } from '@patternfly/react-icons';
import type { Instance } from '../api/client';
import { useText } from '../i18n';
import { busy, noteOf, phaseKey, phaseOf } from '../lib/phase';
import { useTell } from './told';

/** PhaseLabel shows an instance's state, not only by colour. */
export function PhaseLabel({ instance }: { instance: Instance }) {
  const { t } = useText();
  const tell = useTell();
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
  if (p === 'Pending')
    return (
      <Tooltip content={tell(noteOf(instance)) || t('phase.pendingHelp')}>
        <Label color="blue" icon={<InProgressIcon />} tabIndex={0}>
          {text}
        </Label>
      </Tooltip>
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
