// Whether there is room for another size of an instance, and what it costs beside the present one.
import { Alert } from '@patternfly/react-core';
import type { Instance } from '../../api/client';
import { useOffers, type Tried } from '../../api/offers';
import { useVolume } from '../../api/storage';
import { useText } from '../../i18n';
import { told } from '../../lib/cause';
import { formatMicros } from '../../lib/format';
import type { Offer } from '../../lib/offer';
import { sliceOf } from '../../lib/resize';
import { UsualWait } from '../../parts/queue';
import { Rows } from '../../parts/rows';
import { useTell } from '../../parts/told';

/** usePrice returns the offer for a spec, with the root disk that the instance has. */
function usePrice(i: Instance, spec: Instance['spec'], on: boolean): Offer | undefined {
  const root = useVolume(i.assignment?.rootVolume ?? '');
  const offers = useOffers(
    {
      project: i.meta.project ?? '',
      flavor: spec.flavor,
      rootBytes: root.data?.spec.sizeBytes ?? 0,
      ...sliceOf(spec.vgpu),
    },
    on && !root.isLoading,
  );
  if (offers.isPlaceholderData) return undefined;
  return offers.data?.items.find((o) => Boolean(o.model) === Boolean(spec.vgpu));
}

function Hourly({ offer: o }: { offer: Offer }) {
  const { t, language } = useText();
  const money = (micros: number) => t('unit.perHour', { price: formatMicros(micros, o.currency, language) });
  if (o.reservedMicros === o.fullUseMicros) return <>{money(o.fullUseMicros)}</>;
  return <>{t('size.priceGPU', { reserved: money(o.reservedMicros), full: money(o.fullUseMicros) })}</>;
}

interface NewSizeProps {
  instance: Instance;
  spec: Instance['spec'];
  tried: Tried;
  /** The spec is valid, and has not changed for a moment. */
  complete: boolean;
}

export function NewSize({ instance, spec, tried, complete }: NewSizeProps) {
  const { t } = useText();
  const tell = useTell();
  const now = usePrice(instance, instance.spec, true);
  const then = usePrice(instance, spec, complete);
  return (
    <div className="basalt-stack" aria-live="polite">
      {now && then && (
        <Rows
          rows={[
            [t('size.now'), <Hourly key="now" offer={now} />],
            [t('size.then'), <Hourly key="then" offer={then} />],
          ]}
        />
      )}
      {tried.warnings.includes('no-room-now') && (
        <Alert component="p" variant="info" isInline title={t('size.noRoom')}>
          {tried.noRoom && `${tell(told(tried.noRoom.text, tried.noRoom.cause))} `}
          {t('size.noRoomHelp')}
          {tried.queue && (
            <>
              {' '}
              {t('queue.would', { position: tried.queue.position, length: tried.queue.length })}{' '}
              <UsualWait queue={tried.queue} />
            </>
          )}
        </Alert>
      )}
    </div>
  );
}
