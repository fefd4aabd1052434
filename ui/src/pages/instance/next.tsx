// What to do with an instance that has just come up: the way in, and the first
// program on its GPU.
import { Alert, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { Link } from 'wouter';
import type { Instance } from '../../api/client';
import { useText } from '../../i18n';
import { phaseOf } from '../../lib/phase';
import { Copyable } from '../../parts/copyable';

const setUp = { running: 'next.setUpRuns', done: 'next.setUpDone' } as const;

export function Next({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  if (phaseOf(i) !== 'Running') return null;
  const said = i.status?.conditions?.find((c) => c.type === 'SetUp');
  const state = setUp[said?.reason as keyof typeof setUp];
  return (
    <Card>
      <CardTitle component="h2">{t('next.title')}</CardTitle>
      <CardBody className="basalt-stack">
        {state && <p role="status">{t(state)}</p>}
        {said?.reason === 'errors' && (
          <Alert isInline variant="warning" title={t('next.setUpErrors')} component="p">
            {said.message}
          </Alert>
        )}
        <p>
          {t('next.console')} <Link href={`/instances/${i.meta.id}/console`}>{t('next.open')}</Link>
        </p>
        {i.spec.vgpu && (
          <>
            <p role="status">
              {i.status?.guestTools ? t('next.tools', { version: i.status.guestTools }) : t('next.toolsWait')}
            </p>
            <Copyable label={t('next.smi')} text="nvidia-smi" />
            <Copyable label={t('next.program')} text="/opt/basalt/demo/vecadd" />
          </>
        )}
      </CardBody>
    </Card>
  );
}
