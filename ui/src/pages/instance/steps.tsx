// The progress of an instance's creation, until it runs.
import { Card, CardBody, CardTitle, ProgressStep, ProgressStepper } from '@patternfly/react-core';
import type { Instance } from '../../api/client';
import { useText } from '../../i18n';
import { noteOf } from '../../lib/phase';
import { stepsOf } from '../../lib/steps';
import { useTell } from '../../parts/told';

const looks = { done: 'success', current: 'info', waiting: 'pending', failed: 'danger' } as const;

export function Steps({ instance }: { instance: Instance }) {
  const { t } = useText();
  const tell = useTell();
  const steps = stepsOf(instance);
  if (!steps) return null;
  return (
    <Card>
      <CardTitle component="h2">{t('step.title')}</CardTitle>
      <CardBody>
        <ProgressStepper isVertical aria-label={t('step.title')}>
          {steps.map(({ name, state }) => (
            <ProgressStep
              key={name}
              id={`step-${name}`}
              titleId={`step-${name}-title`}
              variant={looks[state]}
              isCurrent={state === 'current'}
              aria-label={t(`step.state.${state}`)}
              description={state === 'current' || state === 'failed' ? tell(noteOf(instance)) : undefined}
            >
              {t(`step.${name}`)}
            </ProgressStep>
          ))}
        </ProgressStepper>
      </CardBody>
    </Card>
  );
}
