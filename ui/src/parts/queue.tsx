// How long similar instances waited in the queue.
import type { Schemas } from '../api/client';
import { useText } from '../i18n';
import { formatWait } from '../lib/format';

const most = 20; // waits that the median is calculated from, at most

export function UsualWait({ queue: q }: { queue: Schemas['InstanceQueue'] }) {
  const { t, language } = useText();
  if (!q.usualSeconds) return <>{t('queue.unknown')}</>;
  const usual = { time: formatWait(q.usualSeconds, language), n: Math.min(q.samples, most) };
  return (
    <>
      {t('queue.usual', usual)} {!q.expectedAt && t('queue.longer')}
    </>
  );
}
