// The place of an instance that waits for a node with room, or for another size.
import { Button, Card, CardBody, CardTitle } from '@patternfly/react-core';
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Instance } from '../../api/client';
import { useQueuePlace, waits } from '../../api/queue';
import { instances } from '../../api/resource';
import { useText } from '../../i18n';
import { cancelled } from '../../lib/resize';
import { ErrorAlert } from '../../parts/error';
import { UsualWait } from '../../parts/queue';
import { Rows } from '../../parts/rows';
import { Time } from '../../parts/time';

export function Queue({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const q = useQueuePlace(i).data;
  if (!q || !waits(i)) return null;
  const resize = Boolean(i.assignment?.node);
  return (
    <Card>
      <CardTitle component="h2">{t(resize ? 'queue.resizeTitle' : 'queue.title')}</CardTitle>
      <CardBody className="basalt-stack">
        <p role="status">{t('queue.place', { position: q.position, length: q.length })}</p>
        <Rows
          rows={[
            [t('queue.since'), q.since && <Time key="since" at={q.since} />],
            [
              t(resize ? 'queue.expectedSize' : 'queue.expected'),
              q.expectedAt ? <Time key="expected" at={q.expectedAt} /> : t('queue.noTime'),
            ],
            [t('queue.until'), !resize && i.spec.queueUntil && <Time key="until" at={i.spec.queueUntil} />],
          ]}
        />
        <p>
          <UsualWait queue={q} />
        </p>
        <p className="basalt-note">{t(resize ? 'queue.resizeHelp' : 'queue.help')}</p>
        {resize && <CancelResize instance={i} />}
      </CardBody>
    </Card>
  );
}

/** CancelResize requests the size that the instance has, if that is known. */
function CancelResize({ instance: i }: { instance: Instance }) {
  const { t } = useText();
  const client = useQueryClient();
  const back = cancelled(i);
  const cancel = useMutation({
    mutationFn: (to: Instance) => instances.patch(i.meta.id ?? '', i, to),
    onSuccess: (saved) => client.setQueryData(instances.key(i.meta.id ?? ''), saved),
  });
  if (!back) return null;
  return (
    <div>
      <ErrorAlert error={cancel.error} />
      <Button
        variant="secondary"
        isLoading={cancel.isPending}
        isDisabled={cancel.isPending}
        onClick={() => cancel.mutate(back)}
      >
        {t('queue.cancelResize')}
      </Button>
    </div>
  );
}
