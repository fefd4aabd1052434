// What to do with an instance that has just come up: the way in, and the first
// program on its GPU.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import { Link } from 'wouter';
import type { Instance } from '../../api/client';
import { useText } from '../../i18n';
import { phaseOf } from '../../lib/phase';
import { Copyable } from '../../parts/copyable';

export function Next({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  if (phaseOf(i) !== 'Running') return null;
  return (
    <Card>
      <CardTitle component="h2">{t('next.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p>{t('next.console')} <Link href={`/instances/${i.meta.id}/console`}>{t('next.open')}</Link></p>
        {i.spec.vgpu && (
          <>
            <p role="status">{i.status?.guestTools ? t('next.tools', { version: i.status.guestTools }) : t('next.toolsWait')}</p>
            <Copyable label={t('next.smi')} text="nvidia-smi" />
            <Copyable label={t('next.program')} text="/opt/basalt/demo/vecadd" />
          </>
        )}
      </CardBody>
    </Card>
  );
}
