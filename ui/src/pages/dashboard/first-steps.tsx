// A tenant's first steps, from a key to a program that uses a GPU: derived from the existing objects.
import { Button, Card, CardBody, CardFooter, CardTitle } from '@patternfly/react-core';
import { CheckCircleIcon, OutlinedCircleIcon } from '@patternfly/react-icons';
import { useState } from 'react';
import { Link } from 'wouter';
import { useInstances } from '../../api/queries';
import { useSSHKeys } from '../../api/ssh';
import { useText } from '../../i18n';
import { firstSteps, readyWithGpu } from '../../lib/first-steps';
import { useProject } from '../../parts/project';
import { ChooseGpu } from './choose-gpu';

const stored = 'basalt.first-steps';

export function FirstSteps() {
  const { t } = useText();
  const { project } = useProject();
  const [hidden, hide] = useState(() => localStorage.getItem(stored) !== null);
  const keys = useSSHKeys();
  const instances = useInstances({ project, limit: 100 });
  if (hidden || !keys.data || !instances.data) return null;
  const items = instances.data.items;
  const steps = firstSteps(keys.data.items.length, items);
  if (steps.every((s) => s.done)) return null;
  const newest = readyWithGpu(items) ?? items[0];
  const to = {
    key: '/account',
    instance: '/instances/new',
    gpu: newest ? `/instances/${newest.meta.id}` : '/instances/new',
  };
  return (
    <Card>
      <CardTitle component="h2">{t('first.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <ol className="basalt-plain">
          {steps.map((s) => (
            <li key={s.step}>
              {s.done ? (
                <CheckCircleIcon aria-label={t('first.done')} />
              ) : (
                <OutlinedCircleIcon aria-label={t('first.open')} />
              )}{' '}
              {s.done ? t(`first.${s.step}`) : <Link href={to[s.step]}>{t(`first.${s.step}`)}</Link>}
              <span className="basalt-note"> {t(`first.${s.step}Help`)}</span>
            </li>
          ))}
        </ol>
        {items.length === 0 && <ChooseGpu />}
      </CardBody>
      <CardFooter>
        <Button variant="link" isInline onClick={() => (localStorage.setItem(stored, 'hidden'), hide(true))}>
          {t('setup.dismiss')}
        </Button>
      </CardFooter>
    </Card>
  );
}
