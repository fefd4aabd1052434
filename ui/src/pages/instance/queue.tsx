// The place of an instance that waits for a node with room.
import { Card, CardBody, CardTitle } from '@patternfly/react-core';
import type { Instance } from '../../api/client';
import { useQueuePlace, waits } from '../../api/queue';
import { useText } from '../../i18n';
import { UsualWait } from '../../parts/queue';
import { Rows } from '../../parts/rows';
import { Time } from '../../parts/time';

export function Queue({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const q = useQueuePlace(i).data;
  if (!q || !waits(i)) return null;
  return (
    <Card>
      <CardTitle component="h2">{t('queue.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p role="status">{t('queue.place', { position: q.position, length: q.length })}</p>
        <Rows
          rows={[
            [t('queue.since'), <Time key="since" at={q.since} />],
            [t('queue.expected'), q.expectedAt ? <Time key="expected" at={q.expectedAt} /> : t('queue.noTime')],
            [t('queue.until'), i.spec.queueUntil && <Time key="until" at={i.spec.queueUntil} />],
          ]}
        />
        <p>
          <UsualWait queue={q} />
        </p>
        <p className="basalt-note">{t('queue.help')}</p>
      </CardBody>
    </Card>
  );
}
