// An instance's console: a shell, its serial port or its screen while it runs, and the previous output of the
// serial port.
import { Alert, Card, CardBody, CardTitle, ToggleGroup, ToggleGroupItem } from '@patternfly/react-core';
import { lazy, Suspense, useState } from 'react';
import type { Instance } from '../../api/client';
import { useConsoleLog } from '../../api/queries';
import { useConnection } from '../../api/ssh';
import { may, type Session } from '../../api/session';
import { Loading } from '../../parts/loading';
import { useText } from '../../i18n';
import { phaseKey, phaseOf, type Phase } from '../../lib/phase';

const Serial = lazy(() => import('./serial'));
const Shell = lazy(() => import('./shell'));
const Screen = lazy(() => import('./screen'));

type Kind = 'shell' | 'serial' | 'screen';

/** hasConsole reports whether there is a virtual machine, which is also the case while it starts or stops. */
const hasConsole = (p: Phase) => ['Starting', 'Running', 'Stopping', 'Moving'].includes(p);

export function Console({ session, instance }: { session: Session; instance: Instance }) {
  const { t } = useText();
  const [chosen, choose] = useState<Kind | null>(null);
  const id = instance.meta.id ?? '';
  const phase = phaseOf(instance);
  const mayUse = may(session, 'member');
  const live = mayUse && hasConsole(phase);
  const log = useConsoleLog(id, !live && phase !== 'Pending' && phase !== 'Creating');
  const connection = useConnection(live ? id : '');
  if (!live)
    return (
      <Card>
        <CardTitle component="h2">{t('one.log')}</CardTitle>
        <CardBody className="basalt-stack">
          <Alert
            isInline
            isPlain
            variant="info"
            component="p"
            title={mayUse ? t('console.stopped', { state: t(phaseKey(phase)) }) : t('console.viewer')}
          />
          <Earlier text={log.data ?? ''} />
        </CardBody>
      </Card>
    );
  // Shells use the SSH gateway; without a reply about it, none is offered.
  const kinds: Kind[] = connection.data?.gateway ? ['shell', 'serial', 'screen'] : ['serial', 'screen'];
  const kind = chosen ?? kinds[0];
  if (connection.isPending) return <Loading />;
  return (
    <Card>
      <CardTitle component="h2">{t('one.log')}</CardTitle>
      <CardBody className="basalt-stack">
        <ToggleGroup aria-label={t('console.kind')}>
          {kinds.map((k) => (
            <ToggleGroupItem
              key={k}
              text={t(`console.${k}`)}
              buttonId={`console-${k}`}
              isSelected={kind === k}
              onChange={() => choose(k)}
            />
          ))}
        </ToggleGroup>
        <Suspense fallback={<Loading />}>
          {kind === 'shell' && <Shell id={id} />}
          {kind === 'serial' && <Serial id={id} />}
          {kind === 'screen' && <Screen id={id} />}
        </Suspense>
      </CardBody>
    </Card>
  );
}

function Earlier({ text }: { text: string }) {
  const { t } = useText();
  // Control characters of terminals have no meaning here.
  // eslint-disable-next-line no-control-regex
  const plain = text.replace(/\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x08\x0b-\x1f]/g, '');
  return (
    <>
      <h3>{t('console.earlier')}</h3>
      <p className="basalt-note">{t('one.logHelp')}</p>
      {plain ? <pre className="basalt-log">{plain}</pre> : <p>{t('one.logEmpty')}</p>}
    </>
  );
}
