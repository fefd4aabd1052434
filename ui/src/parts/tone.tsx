// A state in one word, with a colour and an icon: never only by colour.
import { Label } from '@patternfly/react-core';
import {
  CheckCircleIcon,
  ExclamationCircleIcon,
  ExclamationTriangleIcon,
  InProgressIcon,
  OffIcon,
} from '@patternfly/react-icons';

export type Tone = 'good' | 'busy' | 'off' | 'warning' | 'bad';

const looks = {
  good: { color: 'green', icon: <CheckCircleIcon /> },
  busy: { color: 'blue', icon: <InProgressIcon /> },
  off: { color: 'grey', icon: <OffIcon /> },
  warning: { color: 'orange', icon: <ExclamationTriangleIcon /> },
  bad: { color: 'red', icon: <ExclamationCircleIcon /> },
} as const;

export const ToneLabel = ({ tone, text }: { tone: Tone; text: string }) => <Label {...looks[tone]}>{text}</Label>;
