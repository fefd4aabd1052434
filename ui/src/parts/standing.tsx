import { Label } from '@patternfly/react-core';
import { BanIcon, CheckCircleIcon, ExclamationTriangleIcon, InProgressIcon } from '@patternfly/react-icons';
import type { Organization } from '../api/customers';
import { useText } from '../i18n';
import { standingOf } from '../lib/organization';

/** StandingLabel shows an organization's state, not only by colour. */
export function StandingLabel({ organization }: { organization: Organization }) {
  const { t } = useText();
  const s = standingOf(organization);
  const text = t(`cust.state.${s}`);
  switch (s) {
    case 'active':
      return (
        <Label color="green" icon={<CheckCircleIcon />}>
          {text}
        </Label>
      );
    case 'deleting':
      return (
        <Label color="blue" icon={<InProgressIcon />}>
          {text}
        </Label>
      );
    case 'suspended':
      return (
        <Label color="red" icon={<BanIcon />}>
          {text}
        </Label>
      );
    default:
      return (
        <Label color="orange" icon={<ExclamationTriangleIcon />}>
          {text}
        </Label>
      );
  }
}
