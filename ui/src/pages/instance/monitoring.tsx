// The utilization of an instance, now and over the last day.
import type { Instance } from '../../api/client';
import { useText } from '../../i18n';
import { Charts } from '../../parts/charts';

export function Monitoring({ instance }: { instance: Instance }) {
  const { t } = useText();
  return (
    <div className="basalt-stack">
      <p className="basalt-note">{t('chart.help')}</p>
      <Charts of="instances" id={instance.meta.id ?? ''} label={t('one.monitoring')} />
    </div>
  );
}
