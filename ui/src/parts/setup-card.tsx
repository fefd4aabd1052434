// The missing steps of a cluster's setup. On an unused cluster the wizard opens by itself, once.
import { Button, Card, CardBody, CardFooter, CardTitle } from '@patternfly/react-core';
import { useEffect, useState } from 'react';
import { Link, useLocation } from 'wouter';
import { useThere } from '../api/setup';
import type { Session } from '../api/session';
import { useText } from '../i18n';
import { done, fresh, remember, remembered, steps } from '../lib/setup';

export function SetupCard({ session }: { session: Session }) {
  const [dismissed, setDismissed] = useState(() => remembered() === 'dismissed');
  return dismissed ? null : <Missing session={session} onDismiss={() => (remember('dismissed'), setDismissed(true))} />;
}

function Missing({ session, onDismiss }: { session: Session; onDismiss: () => void }) {
  const { t } = useText();
  const [, go] = useLocation();
  const { there } = useThere(session);
  const begin = there !== undefined && fresh(there) && !remembered();
  useEffect(() => {
    if (begin) go('/setup');
  }, [begin, go]);
  if (!there) return null;
  const is = done(there);
  const open = steps.filter((s) => !is[s]);
  if (open.length === 0) return null;
  return (
    <Card>
      <CardTitle component="h2">{t('setup.card')}</CardTitle>
      <CardBody className="basalt-stack">
        <p>{t('setup.cardHelp', { done: steps.length - open.length, all: steps.length })}</p>
        <ul>
          {open.map((s) => (
            <li key={s}>
              <Link href={`/setup/${s}`}>{t(`setup.${s}`)}</Link>
            </li>
          ))}
        </ul>
      </CardBody>
      <CardFooter>
        <Button variant="link" isInline onClick={onDismiss}>
          {t('setup.dismiss')}
        </Button>
      </CardFooter>
    </Card>
  );
}
